// Evaluates the JavaScript lines of docs/webhooks.md for deliveries: what the packages from npm say.
// Reads {lines, deliveries} and writes, for each line, which of the deliveries it accepts.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";

const { lines, deliveries } = JSON.parse(readFileSync(0, "utf8"));
const answers = lines.map((line) => {
  const verify = new Function("Stripe", "Webhook", "body", "headers", "secret", line);
  return deliveries.map(({ headers, body, secret }) => {
    try {
      verify(Stripe, Webhook, Buffer.from(body), headers, secret);
      return true;
    } catch (refused) {
      if (!/Signature|Verification/.test(refused.constructor.name)) throw refused;
      return false;
    }
  });
});
console.log(JSON.stringify(answers));
