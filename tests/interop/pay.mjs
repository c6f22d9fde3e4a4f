// The official client pays through our sandbox, from the wallet addresses to the outgoing payment. It checks each
// answer against the official OpenAPI files. Prints one line a step; exits 1 at the first thing that is not so.
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createAuthenticatedClient, isPendingGrant, isFinalizedGrant } from "@interledger/open-payments";

const { MERCHANT, CUSTOMER, KEY_ID, KEY_FILE } = process.env;
const FINISH = "https://shop.example/return?order=42";
const NONCE = "c0ffee-0123456789";

function expect(holds, what) {
  if (!holds) throw new Error(`not so: ${what}`);
  console.log(`ok ${what}`);
}

const client = await createAuthenticatedClient({
  walletAddressUrl: MERCHANT,
  keyId: KEY_ID,
  privateKey: readFileSync(KEY_FILE),
  validateResponses: true,
  logLevel: "silent",
});
const shop = await client.walletAddress.get({ url: MERCHANT });
const payer = await client.walletAddress.get({ url: CUSTOMER });
expect(shop.id === MERCHANT && payer.id === CUSTOMER, "both wallet addresses are read");
const { keys } = await client.walletAddress.getKeys({ url: MERCHANT });
expect(keys.some((key) => key.kid === KEY_ID), "the key is registered");

const access = (type, actions, more = {}) => ({ access_token: { access: [{ type, actions, ...more }] } });
const incomingGrant = await client.grant.request(
  { url: shop.authServer },
  access("incoming-payment", ["create", "read", "complete", "list"], { identifier: shop.id }),
);
expect(isFinalizedGrant(incomingGrant), "the incoming payment grant needs nobody");
const incoming = await client.incomingPayment.create(
  { url: shop.resourceServer, accessToken: incomingGrant.access_token.value },
  {
    walletAddress: shop.id,
    incomingAmount: { value: "2000", assetCode: shop.assetCode, assetScale: shop.assetScale },
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    metadata: { description: "Café, 2 × tea" },
  },
);
expect(incoming.incomingAmount.value === "2000", "the incoming payment is made");

const quoteGrant = await client.grant.request({ url: payer.authServer }, access("quote", ["create", "read"]));
const quote = await client.quote.create(
  { url: payer.resourceServer, accessToken: quoteGrant.access_token.value },
  { walletAddress: payer.id, receiver: incoming.id, method: "ilp" },
);
expect(quote.receiveAmount.value === "2000", `the quote is ${quote.debitAmount.value} ${quote.debitAmount.assetCode}`);
const same = await client.quote.get({ url: quote.id, accessToken: quoteGrant.access_token.value });
expect(same.id === quote.id, "the quote can be read");

const pending = await client.grant.request(
  { url: payer.authServer },
  {
    ...access("outgoing-payment", ["create", "read", "list"], {
      identifier: payer.id,
      limits: { receiver: incoming.id, debitAmount: quote.debitAmount },
    }),
    interact: { start: ["redirect"], finish: { method: "redirect", uri: FINISH, nonce: NONCE } },
  },
);
expect(isPendingGrant(pending), "the outgoing payment grant waits for the customer");

const page = await fetch(pending.interact.redirect);
const html = await page.text();
const form = /<form[^>]*action="([^"]*)"[^>]*>(?:(?!<\/form>)[\s\S])*?approve/i.exec(html);
expect(page.status === 200 && form !== null, "the consent page has a form to approve with");
const fields = new URLSearchParams();
for (const [tag] of html.matchAll(/<(?:input|button)[^>]*>/g)) {
  const name = /name="([^"]*)"/.exec(tag)?.[1];
  const value = /value="([^"]*)"/.exec(tag)?.[1] ?? "";
  if (name && !/decline|reject/i.test(value)) fields.set(name, value);
}
const target = new URL(form[1].replaceAll("&amp;", "&"), page.url);
const sent = await fetch(target, { method: "POST", body: fields, redirect: "manual" });
let back = new URL(sent.headers.get("location"), target);
while (back.origin === target.origin) {
  const next = await fetch(back, { redirect: "manual" });
  back = new URL(next.headers.get("location"), back);
}
expect(back.href.startsWith(FINISH), "the customer is sent back, the shop's own query kept");

const reference = back.searchParams.get("interact_ref");
const base = [NONCE, pending.interact.finish, reference, payer.authServer].join("\n");
const hash = createHash("sha256").update(base).digest();
expect(timingSafeEqual(hash, Buffer.from(back.searchParams.get("hash"), "base64")), "the interaction hash verifies");

await sleep((pending.continue.wait ?? 0) * 1000);
const grant = await client.grant.continue(
  { url: pending.continue.uri, accessToken: pending.continue.access_token.value },
  { interact_ref: reference },
);
expect(isFinalizedGrant(grant), "the grant is continued");
const payment = await client.outgoingPayment.create(
  { url: payer.resourceServer, accessToken: grant.access_token.value },
  { walletAddress: payer.id, quoteId: quote.id, metadata: { description: "order 42" } },
);
expect(payment.receiver === incoming.id && !payment.failed, "the outgoing payment is made");

const read = { accessToken: grant.access_token.value };
const found = await client.outgoingPayment.get({ url: payment.id, ...read });
expect(found.id === payment.id, "the outgoing payment can be read");
const list = await client.outgoingPayment.list(
  { url: payer.resourceServer, walletAddress: payer.id, ...read },
  { first: 10 },
);
expect(list.result.some((each) => each.id === payment.id), "and is in the list");
const paid = await client.incomingPayment.get({ url: incoming.id, accessToken: incomingGrant.access_token.value });
expect(paid.completed && paid.receivedAmount.value === "2000", "the merchant has received exactly the amount");
const open = await client.incomingPayment.getPublic({ url: incoming.id });
expect(open.receivedAmount.value === "2000", "everybody can see it");

const rotated = await client.token.rotate({ url: grant.access_token.manage, ...read });
expect(rotated.access_token.value !== grant.access_token.value, "the token is rotated");
await client.token.revoke({ url: rotated.access_token.manage, accessToken: rotated.access_token.value });
expect(true, "and revoked");
await client.grant.cancel({ url: pending.continue.uri, accessToken: grant.continue.access_token.value });
expect(true, "the grant is cancelled");
