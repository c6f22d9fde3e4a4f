// Sell a bag of coffee with the native API, in plain Node: there is nothing to install.
// API_BASE is the checkout (`make dev`: http://localhost:4000), API_KEY is your key, and
// WEBHOOK_SECRET the secret of your webhook endpoint. Run it with `node shop.mjs`.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { API_BASE, API_KEY, WEBHOOK_SECRET, PORT = "3000" } = process.env;
const home = `http://localhost:${PORT}/`;
const sessions = `${API_BASE}/api/checkout/sessions`;
const paid = new Set(); // a real shop has a database, also for the events that it has seen

// Send a request to the checkout. The order's number makes a repeated one harmless.
async function ask(url, body, order) {
  const headers = { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" };
  if (order) headers["Idempotency-Key"] = order;
  const method = body ? "POST" : "GET";
  const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  const value = await answer.json();
  if (!answer.ok) throw new Error(`${value.error.message} See ${value.error.doc_url}`);
  return value;
}

// Return whether the checkout has sent this raw body within the last five minutes.
function verify(body, signature = "") {
  const parts = signature.split(",").map((part) => part.split("="));
  const sentAt = parts.find(([name]) => name === "t")?.[1] ?? "";
  const mac = createHmac("sha256", WEBHOOK_SECRET).update(`${sentAt}.`).update(body);
  const expected = Buffer.from(mac.digest("hex"));
  const genuine = parts.some(([name, value = ""]) => {
    const given = Buffer.from(value);
    return name === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
  return genuine && Math.abs(Date.now() / 1000 - Number(sentAt)) <= 300;
}

function buy(order) {
  const price = { currency: "usd", unit_amount: 1000, product_data: { name: "Coffee, 1 kg" } };
  const body = {
    mode: "payment",
    line_items: [{ price_data: price, quantity: 2 }],
    metadata: { order },
    success_url: `${home}thanks?session={CHECKOUT_SESSION_ID}`,
    cancel_url: home,
  };
  return ask(sessions, body, order);
}

const routes = {
  "GET /": () => ['<form method="post" action="/buy"><button>Buy, 20.00 USD</button></form>'],
  "GET /thanks": async ({ url }) => {
    const session = await ask(`${sessions}/${url.searchParams.get("session")}`);
    return [session.status === "completed" ? "Paid, thank you." : "Your payment is on its way."];
  },
  "GET /orders": () => [JSON.stringify([...paid].sort())],
  "POST /buy": async () => ["", 303, { Location: (await buy(`order-${randomBytes(4).toString("hex")}`)).url }],
  "POST /hooks": ({ body, headers }) => {
    if (!verify(body, headers["checkout-signature"])) return ["wrong signature", 400];
    const event = JSON.parse(body);
    if (event.status === "completed") paid.add(event.metadata.order);
    return [""];
  },
};

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const url = new URL(request.url, home);
  const route = routes[`${request.method} ${url.pathname}`] ?? (() => ["not found", 404]);
  const given = { url, headers: request.headers, body: Buffer.concat(chunks) };
  const [text, status = 200, headers = {}] = await (async () => route(given))().catch((error) => {
    console.error(error.message); // a wrong request or key; the customer reads no more than this
    return ["Something went wrong on our side.", 500];
  });
  response.writeHead(status, { "Content-Type": "text/html; charset=utf-8", ...headers }).end(text);
}).listen(Number(PORT), "127.0.0.1");
