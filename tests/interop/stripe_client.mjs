// Use /v1 with stripe-node as a shop's server does. Its input is JSON: the ids of sessions that exist.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import Stripe from "stripe";

const base = new URL(process.env.API_BASE);
const stripe = new Stripe(process.env.API_KEY, {
  host: base.hostname,
  port: base.port,
  protocol: base.protocol.slice(0, -1),
});
const sessions = stripe.checkout.sessions;
const purchase = (more = {}) => ({
  mode: "payment",
  line_items: [
    {
      price_data: { currency: "usd", unit_amount: 1000, product_data: { name: "Tea" } },
      quantity: 2,
    },
  ],
  success_url: "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}",
  metadata: { order: "7" },
  ...more,
});
const refused = async (call, type, param) => {
  const error = await call().then(
    () => assert.fail("it was accepted"),
    (found) => found,
  );
  assert.equal(error.type, type);
  assert.equal(error.param, param);
  assert.match(error.requestId, /^req_/);
};

const key = { idempotencyKey: randomUUID() };
const created = await sessions.create(purchase(), key);
assert.deepEqual([created.status, created.amount_total], ["open", 2000]);
const again = await sessions.create(purchase(), key);
assert.equal(again.id, created.id);
await refused(
  () => sessions.create(purchase({ metadata: { order: "8" } }), key),
  "StripeIdempotencyError",
  "Idempotency-Key",
);
const read = await sessions.retrieve(created.id, { expand: ["line_items"] });
assert.equal(read.line_items.data[0].price.unit_amount, 1000);
const [item] = (await sessions.listLineItems(created.id)).data;
assert.equal(item.quantity, 2);
const price = await stripe.prices.retrieve(item.price.id, { expand: ["product"] });
assert.deepEqual([price.unit_amount, price.product.name], [1000, "Tea"]);
assert.equal((await stripe.products.retrieve(price.product.id)).name, "Tea");
await refused(
  () => sessions.create(purchase({ customer: "cus_1" })),
  "StripeInvalidRequestError",
  "customer",
);
const end = { idempotencyKey: randomUUID() };
assert.equal((await sessions.expire(created.id, {}, end)).status, "expired");
assert.equal((await sessions.expire(created.id, {}, end)).status, "expired");

const known = new Set(JSON.parse(readFileSync(0, "utf8")));
const seen = [];
for await (const session of sessions.list({ limit: 50 })) {
  if (seen.length % 25 === 0) await sessions.create(purchase());
  seen.push(session.id);
}
assert.equal(new Set(seen).size, seen.length);
assert.ok([...known].every((id) => seen.includes(id)));
assert.equal((await stripe.balance.retrieve()).available[0].amount, 0);
console.log(`stripe-node ${Stripe.PACKAGE_VERSION}: ${seen.length} sessions`);
