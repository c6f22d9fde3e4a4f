// Sell a bag of coffee with Express and Stripe's own library, paid from a wallet.
// API_BASE is the checkout (`make dev`: http://localhost:4000), API_KEY is your key, and
// WEBHOOK_SECRET the secret of your webhook endpoint. Run it with `node shop.mjs`.
import express from "express";
import Stripe from "stripe";

const { API_BASE, API_KEY, WEBHOOK_SECRET, PORT = "3000" } = process.env;
const base = new URL(API_BASE);
const stripe = new Stripe(API_KEY, {
  host: base.hostname, // these three lines differ from a shop on Stripe
  port: base.port || 443,
  protocol: base.protocol.slice(0, -1),
});
const paid = new Set(); // a real shop has a database
const app = express();
const home = (request) => `${request.protocol}://${request.get("host")}/`;

app.get("/", (_, response) => {
  response.send('<form method="post" action="/buy"><button>Buy coffee, 20.00 USD</button></form>');
});

app.post("/buy", async (request, response) => {
  const session = await stripe.checkout.sessions.create({
    mode: "payment",
    line_items: [
      {
        price_data: { currency: "usd", unit_amount: 1000, product_data: { name: "Coffee, 1 kg" } },
        quantity: 2,
      },
    ],
    client_reference_id: "order-1",
    success_url: `${home(request)}thanks?session={CHECKOUT_SESSION_ID}`,
    cancel_url: home(request),
  });
  response.redirect(303, session.url);
});

app.get("/thanks", async (request, response) => {
  const session = await stripe.checkout.sessions.retrieve(request.query.session);
  const arrived = session.payment_status === "paid";
  response.send(arrived ? "Paid, thank you." : "Your payment is on its way.");
});

app.post("/hooks", express.raw({ type: "application/json" }), (request, response) => {
  let event;
  try {
    const signature = request.get("Stripe-Signature");
    event = stripe.webhooks.constructEvent(request.body, signature, WEBHOOK_SECRET);
  } catch {
    return response.status(400).send("wrong signature");
  }
  if (event.type === "checkout.session.completed") paid.add(event.data.object.client_reference_id);
  response.end();
});

app.get("/orders", (_, response) => response.json([...paid].sort()));

app.listen(Number(PORT), "127.0.0.1");
