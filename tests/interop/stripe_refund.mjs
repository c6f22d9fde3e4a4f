// Refund a payment with stripe-node as a shop's server does. It prints the refund's id, waits for a
// line, and reads the refund again, which was approved.
import assert from "node:assert/strict";
import { createInterface } from "node:readline/promises";
import Stripe from "stripe";

const base = new URL(process.env.API_BASE);
const options = { host: base.hostname, port: base.port, protocol: base.protocol.slice(0, -1) };
const stripe = new Stripe(process.env.API_KEY, options);
const other = new Stripe(process.env.OTHER_KEY, options);
const payment_intent = process.env.PAYMENT;

await assert.rejects(
  () => other.refunds.create({ payment_intent }),
  (error) => error.type === "StripePermissionError" && error.statusCode === 403,
);
const once = { idempotencyKey: `refund of ${payment_intent}` };
const given = { payment_intent, amount: 500, reason: "duplicate", metadata: { gone: "1" } };
const refund = await stripe.refunds.create(given, once);
assert.equal((await stripe.refunds.create(given, once)).id, refund.id);
assert.deepEqual([refund.status, refund.amount], ["pending", 500]);
const changed = await stripe.refunds.update(refund.id, { metadata: { gone: "", more: "2" } });
assert.deepEqual(changed.metadata, { more: "2" });
console.log(refund.id);
const input = createInterface({ input: process.stdin });
await input.question("");
input.close();
const done = await stripe.refunds.retrieve(refund.id, { expand: ["charge"] });
assert.deepEqual([done.status, done.charge.amount_refunded], ["succeeded", 500]);
const intent = await stripe.paymentIntents.retrieve(payment_intent, { expand: ["payment_method"] });
assert.equal(intent.payment_method.type, "custom");
const { source, fee } = await stripe.balanceTransactions.retrieve(done.balance_transaction);
assert.deepEqual([source, fee], [refund.id, 0]);
const whole = await stripe.refunds.create({ payment_intent });
assert.equal((await stripe.refunds.cancel(whole.id)).status, "canceled");
const [session] = (await stripe.checkout.sessions.list({ payment_intent })).data;
const noted = await stripe.checkout.sessions.update(session.id, { metadata: { a: "1" } });
assert.equal(noted.metadata.a, "1");
assert.equal((await stripe.accounts.retrieveCurrent()).default_currency, "usd");
console.log("done");
