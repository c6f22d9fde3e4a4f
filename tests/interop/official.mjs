// The steps of a purchase with the official client, for benchmarks/official.py: a JSON line in, a JSON line out with
// the milliseconds that the step took. Each call follows the one before it, as in the client's own guide.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createAuthenticatedClient } from "@interledger/open-payments";

const { MERCHANT, KEY_ID, KEY_FILE } = process.env;
const privateKey = readFileSync(KEY_FILE);
const made = () =>
  createAuthenticatedClient({ walletAddressUrl: MERCHANT, keyId: KEY_ID, privateKey, logLevel: "silent" });
const access = (type, actions, more = {}) => ({ access_token: { access: [{ type, actions, ...more }] } });
const kept = await made();
const known = await kept.walletAddress.get({ url: MERCHANT });

// From the customer's wallet address to the page to approve on.
async function wallet({ customer, finish, anew }) {
  const client = anew ? await made() : kept;
  const shop = anew ? await client.walletAddress.get({ url: MERCHANT }) : known;
  const payer = await client.walletAddress.get({ url: customer });
  const incomingGrant = await client.grant.request(
    { url: shop.authServer },
    access("incoming-payment", ["create", "read", "complete"]),
  );
  const incoming = await client.incomingPayment.create(
    { url: shop.resourceServer, accessToken: incomingGrant.access_token.value },
    {
      walletAddress: shop.id,
      incomingAmount: { value: "2000", assetCode: shop.assetCode, assetScale: shop.assetScale },
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    },
  );
  const quoteGrant = await client.grant.request({ url: payer.authServer }, access("quote", ["create"]));
  const quote = await client.quote.create(
    { url: payer.resourceServer, accessToken: quoteGrant.access_token.value },
    { walletAddress: payer.id, receiver: incoming.id, method: "ilp" },
  );
  const limits = { receiver: incoming.id, debitAmount: quote.debitAmount };
  const pending = await client.grant.request(
    { url: payer.authServer },
    {
      ...access("outgoing-payment", ["create", "read"], { identifier: payer.id, limits }),
      interact: { start: ["redirect"], finish: { method: "redirect", uri: finish, nonce: "c0ffee-0123456789" } },
    },
  );
  return { client, payer, incoming, incomingToken: incomingGrant.access_token.value, quote, pending };
}

// From the approval to the sight of the money.
async function callback({ client, payer, incoming, incomingToken, quote, pending }, { reference }) {
  const grant = await client.grant.continue(
    { url: pending.continue.uri, accessToken: pending.continue.access_token.value },
    { interact_ref: reference },
  );
  await client.outgoingPayment.create(
    { url: payer.resourceServer, accessToken: grant.access_token.value },
    { walletAddress: payer.id, quoteId: quote.id },
  );
  const found = await client.incomingPayment.get({ url: incoming.id, accessToken: incomingToken });
  if (found.receivedAmount.value !== "2000") throw new Error("the money is not there");
}

let purchase;
console.log("{}"); // ready
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const began = performance.now();
  if (asked.reference) await callback(purchase, asked);
  else purchase = await wallet(asked);
  const took = performance.now() - began;
  console.log(JSON.stringify({ took, interact: purchase.pending.interact.redirect }));
}
