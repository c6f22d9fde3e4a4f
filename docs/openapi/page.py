"""The reference at /docs: one HTML page for each document. Its script only searches and copies.

Everything on it comes from the documents, from the meanings in docs/tables.py and from the code in
docs/webhooks.md that is tested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from checkout.answers import EXAMPLE_ID
from docs.openapi import examples
from docs.openapi.examples import BASE_URL
from docs.openapi.parts import Object
from docs.tables import MEANINGS, errors

_URLS: Final = {
    "url": f"{BASE_URL}/pay/cs_3kTMd0wvG8PZx5nNq2LrYb",
    "success_url": "https://shop.example/thanks?session=cs_3kTMd0wvG8PZx5nNq2LrYb",
    "cancel_url": "https://shop.example/basket",
}
# Replaced by a test wallet if the stage has some, otherwise removed.
TRY_IT: Final = "<!-- test wallet -->"
_EVENTS: Final = """
<p>The body of a native event is the session, in short, or the whole refund. The type
and the event’s id are in the headers <code>Checkout-Event-Type</code> and
<code>Checkout-Event-Id</code>. <a href="#verify">Verify a webhook</a> says how to add an endpoint.
</p>
<p>An endpoint with <code>format=stripe</code> gets <a href="/docs/v1#Event">Stripe’s event</a>, and
the header <code>Stripe-Signature</code> too. Its <code>enabled_events</code> are Stripe’s names;
those of a native endpoint are the names below. In Stripe’s form the header
<code>Checkout-Event-Type</code> still has the native name: of a canceled session it is
<code>checkout.session.canceled</code>, and the body’s <code>type</code> is
<code>checkout.session.expired</code>; of a failed payment they are
<code>checkout.session.payment_failed</code> and <code>payment_intent.payment_failed</code>.</p>
<p><code>checkout.session.completed</code> and <code>checkout.session.late_payment</code> are made
always, the others only if an endpoint asks for them. One that begins to ask for a type may miss the
events of the first minute: the service keeps a merchant’s settings for a minute.</p>"""
_WEBHOOKS: Final = Path(__file__).parents[1] / "webhooks.md"
_DEPTH_MAX: Final = 6  # of fields within fields
_ERROR: Final = re.compile(r"\| (\d+) \| `(\w+)` \| `(\w+)` \|")


def native(document: Object) -> str:
    """Return the page of the native API, with the first steps and all errors."""
    body = [
        _section("start", "Create a session", _start(document)),
        _section("try", "Pay without a customer", _try()),
        _section("verify", "Verify a webhook", _verify()),
        _section("refund", "Refund a payment", _refund(document)),
        _section("operations", "Operations", _operations(document)),
        _section("objects", "Objects", _objects(document)),
        _section("events", "Webhook events", _events(document)),
        _section("errors", "Errors", _errors()),
    ]
    return _page(document, body, other=("/docs/v1", "For Stripe’s client libraries"))


def stripe(document: Object) -> str:
    """Return the page of the API under /v1."""
    body = [
        _section("start", "Use Stripe’s library", _stripe_start()),
        _section("operations", "Operations", _operations(document)),
        _section("objects", "Objects", _objects(document)),
    ]
    return _page(document, body, other=("/docs", "Native API, webhooks, errors"))


def _page(document: Object, body: Sequence[str], other: tuple[str, str]) -> str:
    info = document["info"]
    name = "openapi-v1.json" if "/v1" in info["title"] else "openapi.json"
    links = [
        f'<li><a href="#{_anchor(operation)}"><code>{method.upper()} {escape(path)}</code></a></li>'
        for path, method, operation in _each(document)
    ]
    sections = re.findall(r'<section id="(\w+)"><h2>(.*?)</h2>', "".join(body))
    titles = [f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in sections]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(info["title"])}: reference</title>
<link rel="stylesheet" href="/docs/style.css">
<script src="/docs/script.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<p class="name">Checkout Sessions <span>{escape(info["version"])}</span></p>
<div role="search" hidden><label for="find">Search this page</label>
<input id="find" type="search" autocomplete="off" spellcheck="false">
<ul id="found" aria-live="polite"></ul></div>
<nav aria-label="Contents">
<ul>{"".join(titles)}</ul>
<details><summary>All endpoints</summary><ul>{"".join(links)}</ul></details>
<ul><li><a href="{other[0]}">{other[1]}</a></li>
<li><a href="/docs/{name}">{name}</a></li></ul>
</nav>
</header>
<main id="content">
<h1>{escape(info["title"])}</h1>
<p>{_text(info["summary"])} {_text(info["description"])}</p>
{"".join(body)}
</main>
</body>
</html>
"""


def _section(anchor: str, title: str, body: str) -> str:
    body = re.sub(r"<code>\n", "<code>", body).replace("\n</code>", "</code>")
    return f'<section id="{anchor}"><h2>{title}</h2>{body}</section>\n'


def _start(document: Object) -> str:
    """Return the first request in three languages."""
    return f"""
<ol>
<li>Create an API key in the dashboard, at <a href="/dashboard/keys"><code>/dashboard/keys</code>
</a>. It is shown once; keep it on your server.</li>
<li>Create a session from your server. Amounts are in the smallest unit: <code>1000</code> is 10.00
USD. The currency is that of your wallet.</li>
<li>Send the customer to <code>url</code> in the answer. Anybody who has it can pay, so keep it
secret.</li>
<li>Fulfil the order when the webhook <code>checkout.session.completed</code> comes, or when <code>
status</code> is <code>completed</code> in an answer to your server. A customer who comes back to
<code>success_url</code> proves nothing.</li>
</ol>
{_request(document, "/api/checkout/sessions", "order", "session", ("id", "url"))}"""


def _try() -> str:
    """Return how a first payment is made without a customer."""
    trigger = f"""make trigger EVENT=completed        # or expired, canceled, refund, ping
make listen TO=http://localhost:3000/hooks
make trigger EVENT=completed AT={BASE_URL}   # on a test stage"""
    return f"""
<p>For a first payment you need neither a customer nor money: test wallets pay with play money, and
some of them fail on purpose. <code>make dev</code>, in the source code of the service, runs a
checkout with such wallets on your machine. An operator can also run a test stage with them.</p>
<ul>
<li>Open <code>url</code> in a browser and pay as a test wallet. On your machine these are <code>
https://localhost:4101/alice</code>, which pays, and <code>/no-funds</code>, <code>/decline</code>
and <code>/partial</code> in place of <code>/alice</code>, which do not.</li>
{TRY_IT}
<li>Without a browser, these commands make a payment or another event happen, and forward the
webhooks to your machine:</li>
</ul>
{_code("Commands in the source code", trigger)}"""


def _refund(document: Object) -> str:
    """Return a refund in three languages."""
    return f"""
<p>Give the session and the amount; without an amount, all that is left is refunded. The key needs
the scope <code>refund</code>, which you choose when you create it. From a refund budget the refund
is paid within minutes. Without one it waits until an owner approves it at <code>approval_url
</code>. The event <code>refund.updated</code> says what became of it.</p>
{_request(document, "/api/checkout/refunds", "credit", "refund", ("id", "approval_url"))}"""


def _request(document: Object, path: str, sent: str, made: str, shown: tuple[str, str]) -> str:
    """Return a POST request in three languages, which prints two fields of the answer.

    `sent` is what the code calls the body, and `made` what it calls the answer.
    """
    operation = document["paths"][path]["post"]
    body = json.dumps(operation["requestBody"]["content"]["application/json"]["example"], indent=2)
    first, second = shown
    why = f"The number of your {sent}. A request that is repeated with it makes no second {made}."
    curl = f"""# {why}
NUMBER=$(date +%s)
curl {BASE_URL}{path} \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: {sent}-$NUMBER" \\
  -d '{body}'"""
    python = f"""import json, os, time, urllib.request

# {why}
number = int(time.time())
{sent} = {body}
request = urllib.request.Request(
    "{BASE_URL}{path}",
    json.dumps({sent}).encode(),
    {{
        "Authorization": "Bearer " + os.environ["API_KEY"],
        "Content-Type": "application/json",
        "Idempotency-Key": f"{sent}-{{number}}",
    }},
)
with urllib.request.urlopen(request) as answer:
    {made} = json.load(answer)
print({made}["{first}"], {made}["{second}"])"""
    node = f"""// {why}
const number = Date.now();
const {sent} = {body};
const answer = await fetch("{BASE_URL}{path}", {{
  method: "POST",
  headers: {{
    Authorization: `Bearer ${{process.env.API_KEY}}`,
    "Content-Type": "application/json",
    "Idempotency-Key": `{sent}-${{number}}`,
  }},
  body: JSON.stringify({sent}),
}});
const {made} = await answer.json();
console.log({made}.{first}, {made}.{second});"""
    blocks = (("curl", curl), ("Python", python), ("JavaScript, Node 18 or newer", node))
    return _languages(sent, blocks)


def _languages(name: str, blocks: Iterable[tuple[str, str]]) -> str:
    """Return the same code in several languages, of which one is unfolded at a time."""
    return "".join(
        f'<details name="{name}" class="code"{"" if number else " open"}>'
        f"<summary>{title}</summary><pre><code>{escape(code)}</code></pre></details>"
        for number, (title, code) in enumerate(blocks)
    )


def _verify() -> str:
    """Return how a delivery is verified, with the tested code of docs/webhooks.md."""
    found = re.findall(r"### (Python|JavaScript)\n\n```\w+\n(.*?)```", _WEBHOOKS.read_text(), re.S)
    blocks = _languages("verify-in", [(name, code.rstrip()) for name, code in found])
    curl = f"""curl {BASE_URL}/v1/webhook_endpoints \\
  -u "$API_KEY:" \\
  -d url=https://shop.example/hooks \\
  -d "enabled_events[]=checkout.session.completed" \\
  -d format=native"""
    return f"""
<ol>
<li>Set the endpoint’s URL in the dashboard, at <a href="/dashboard/webhooks">
<code>/dashboard/webhooks</code></a>, or by API, as below. Keep the secret <code>whsec_…</code>: the
dashboard shows it once, and only the answer to this request has it, as <code>secret</code>. A
merchant has at most 8 endpoints.</li>
<li>Take the <strong>raw body</strong>, before anything parses it, and the header <code>
Checkout-Signature</code>, which is <code>t=…,v1=…</code>. <code>v1</code> is the HMAC-SHA256 of
the time <code>t</code>, a period and the body. The key is the whole secret, with <code>whsec_
</code>. There can be two <code>v1</code>.</li>
<li>Answer 400 if it does not verify. Else remember <code>Checkout-Event-Id</code>, because an event
can come twice, and answer 200 within 10 seconds. Failed deliveries are retried for three days.</li>
</ol>
{_code("curl: an endpoint in the native form", curl)}
<p>Stripe’s libraries verify it, too: <code>stripe.Webhook.construct_event(body,
headers["Checkout-Signature"], secret)</code>. Of a native event they only verify the signature: its
body is no event of Stripe’s, and has no <code>type</code>. The headers <code>webhook-id</code>,
<code>webhook-timestamp</code> and <code>webhook-signature</code> are for the libraries of
Standard Webhooks, with the same secret.</p>
{blocks}"""


def _stripe_start() -> str:
    code = f"""import os, stripe

stripe.api_base = "{BASE_URL}"
stripe.api_key = os.environ["API_KEY"]
session = stripe.checkout.Session.create(
    mode="payment",
    line_items=[
        {{
            "quantity": 2,
            "price_data": {{
                "currency": "usd",
                "unit_amount": 1000,
                "product_data": {{"name": "Espresso beans, 1 kg"}},
            }},
        }}
    ],
    success_url="https://shop.example/thanks?session={{CHECKOUT_SESSION_ID}}",
    cancel_url="https://shop.example/basket",
)
print(session.id, session.url)"""
    curl = f"""curl {BASE_URL}/v1/checkout/sessions \\
  -u "$API_KEY:" \\
  -d mode=payment \\
  -d "line_items[0][quantity]=2" \\
  -d "line_items[0][price_data][currency]=usd" \\
  -d "line_items[0][price_data][unit_amount]=1000" \\
  -d "line_items[0][price_data][product_data][name]=Espresso beans, 1 kg" \\
  -d "success_url=https://shop.example/thanks?session={{CHECKOUT_SESSION_ID}}" \\
  -d cancel_url=https://shop.example/basket"""
    return f"""
<p>Point Stripe’s library at this host and use an API key from <a href="/dashboard/keys"><code>
/dashboard/keys</code></a>. A parameter that would change the money is never ignored: it is refused
by name. Ignored ones are in the header <code>Ignored-Parameters</code>. The project is not
affiliated with Stripe.</p>
{_code("Python", code)}
<p>Without a library, send forms, as Stripe’s libraries do, with brackets for what is nested, or the
same as JSON:</p>
{_code("curl", curl)}"""


def _operations(document: Object) -> str:
    return "".join(
        _operation(document, path, method, operation) for path, method, operation in _each(document)
    )


def _each(document: Object) -> Iterator[tuple[str, str, Object]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _anchor(operation: Object) -> str:
    return str(operation["operationId"])


def _operation(document: Object, path: str, method: str, operation: Object) -> str:
    parts = [f"<p>{_text(operation['description'])}</p>" if "description" in operation else ""]
    given = [_parameter(each) for each in operation.get("parameters", ())]
    if given:
        parts.append(f"<h4>Parameters</h4><ul class='fields'>{''.join(given)}</ul>")
    content = operation.get("requestBody", {}).get("content", {})
    for body in [*content.values()][:1]:  # a form has the fields of the JSON
        fields = "".join(_fields(document, body["schema"]))
        kinds = " or ".join(f"<code>{kind}</code>" for kind in content)
        if fields:
            parts.append(f"<h4>Body, {kinds}</h4><ul class='fields'>{fields}</ul>")
    answers = []
    for status, answer in operation["responses"].items():
        answers.append(f"<li><code>{status}</code> {_codes(answer['description'])}</li>")
    parts.append(f"<h4>Answers</h4><ul>{''.join(answers)}</ul>")
    good = next(iter(operation["responses"].values()))
    schema = good.get("content", {}).get("application/json", {}).get("schema")
    if schema:
        known = examples.STRIPE if path.startswith("/v1/") else examples.NATIVE
        made = known.get(_anchor(operation))
        if made is None:
            made = _sample(document, schema)
            if "url" in made and "data" in made:
                made["url"] = path.replace("{id}", EXAMPLE_ID)
        shown = json.dumps(made, indent=2, ensure_ascii=False)
        parts.append(_code("Example of the answer", shown))
        name = schema["$ref"].rpartition("/")[2]
        parts.append(f'<p>Its fields: <a href="#{name}"><code>{name}</code></a>.</p>')
    title = escape(operation.get("summary") or f"{method.upper()} {path}")
    return (
        f'<article id="{_anchor(operation)}"><h3>{title}</h3>'
        f'<p class="address"><b>{method.upper()}</b> <code>{escape(path)}</code></p>'
        f"{''.join(parts)}</article>\n"
    )


def _objects(document: Object) -> str:
    """Return the fields of every object that an operation returns, each object once."""
    schemas = [
        answer["content"]["application/json"]["schema"]
        for _, _, operation in _each(document)
        for status, answer in operation["responses"].items()
        if status < "3"
    ]
    named = {schema["$ref"].rpartition("/")[2]: schema for schema in schemas}
    found = []
    for name, schema in named.items():
        rows = "".join(_fields(document, schema, returned=True))
        found.append(
            f'<article id="{name}"><h3>{name}</h3><ul class="fields">{rows}</ul></article>'
        )
    return "".join(found)


def _events(document: Object) -> str:
    found = [_EVENTS]
    for name, methods in document["webhooks"].items():
        operation = methods["post"]
        shown = json.dumps(examples.EVENTS[name], indent=2, ensure_ascii=False)
        found.append(
            f'<article id="{_anchor(operation)}"><h3><code>{name}</code></h3>'
            f"<p>{_text(operation['summary'])} {_text(operation.get('description', ''))}</p>"
            f"{_code('Body', shown)}</article>"
        )
    return "".join(found)


def _errors() -> str:
    rows = [
        f'<div id="{code}"><dt><code>{code}</code> <span>{status}, {kind}</span></dt>'
        f"<dd>{_text(MEANINGS[code])}</dd></div>"
        for status, kind, code in _ERROR.findall(errors())
    ]
    shape = {
        "error": {
            "type": "invalid_request_error",
            "code": "parameter_unknown",
            "message": "There is no such parameter. Did you mean `success_url`?",
            "param": "sucess_url",
            "doc_url": f"{BASE_URL}/docs#parameter_unknown",
            "request_id": "req_5dTMd0wvG8PZx5nNq2LrYb",
        }
    }
    return (
        "<p>Every error is JSON of this shape. Use <code>code</code> in your program; "
        "<code>param</code> names the field that is wrong, if there is one. After 409, 429 and 503 "
        "the same request can succeed later; after 429, wait for <code>Retry-After</code> seconds. "
        "Under <code>/v1</code> some types and statuses differ, as Stripe’s libraries expect. "
        "Addresses outside of <code>/api/…</code>, <code>/v1/…</code> and <code>/docs/…</code> are "
        'answered before the service, with <code>{"message":"Not Found"}</code>; so are '
        "<code>/docs/</code>, and all methods but GET on <code>/docs</code>.</p>"
        f"{_code('An error', json.dumps(shape, indent=2))}<dl>{''.join(rows)}</dl>"
    )


def _parameter(given: Object) -> str:
    return _field(
        given["name"],
        f"{given['in']}, {_type(given['schema'])}",
        required=given.get("required", False),
        text=given.get("description", ""),
    )


def _fields(
    document: Object, schema: Object, path: str = "", depth: int = 0, *, returned: bool = False
) -> Iterator[str]:
    """Yield every field of an object, with the fields within it; those to send may be required."""
    schema = _plain(document, schema)
    if schema.get("type") == "array":
        yield from _fields(document, schema["items"], f"{path}[]", depth, returned=returned)
        return
    for name, each in schema.get("properties", {}).items():
        inner = _plain(document, each)
        where = f"{path}.{name}".removeprefix(".")
        required = not returned and name in schema.get("required", ())
        items = _plain(document, inner.get("items", {}))
        simple = {} if items.get("properties") else items
        text = next(
            (one["description"] for one in (each, inner, simple) if "description" in one), ""
        )
        yield _field(where, _type(inner), required=required, text=text)
        if depth < _DEPTH_MAX:
            yield from _fields(document, inner, where, depth + 1, returned=returned)


def _field(name: str, kind: str, *, required: bool, text: str) -> str:
    must = " <b>required</b>" if required else ""
    said = f"<p>{_text(text)}</p>" if text else ""
    return f"<li><code>{escape(name)}</code> <span>{escape(kind)}{must}</span>{said}</li>"


def _plain(document: Object, schema: Object) -> Object:
    """Return a schema without references; of two alternatives, the one that is not null."""
    while True:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            schema = document["components"]["schemas"][name]
        elif "anyOf" in schema:
            schema = next(each for each in schema["anyOf"] if each.get("type") != "null")
        else:
            return schema


def _type(schema: Object) -> str:
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    kind = schema.get("type", "object")
    bounds = [
        f"{word} {schema[name]}"
        for name, word in (
            ("minimum", "from"),
            ("maximum", "to"),
            ("minItems", "at least"),
            ("maxItems", "at most"),
            ("maxLength", "up to"),
        )
        if name in schema
    ]
    names = " or ".join(kind) if isinstance(kind, list) else str(kind)
    if isinstance(schema.get("items", {}).get("type"), str) and names == "array":
        names = f"array of {schema['items']['type']}s"
    return ", ".join([names, *bounds])


def _sample(document: Object, schema: Object, name: str = "") -> Any:
    """Return a value that the schema allows."""
    given = schema
    schema = _plain(document, schema)
    for place in (given, schema):
        if "const" in place:
            return place["const"]
        if place.get("examples"):
            return place["examples"][0]
        if "enum" in place:
            return place["enum"][0]
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        return None  # as it is until something has happened
    if kind == "object":
        if "properties" not in schema:
            return {"order": "1234"} if name == "metadata" else {}
        return {
            each: _sample(document, inner, each)
            for each, inner in schema["properties"].items()
            if each in (schema.get("required") or schema["properties"])
        }
    if kind == "array":
        return [_sample(document, schema["items"])]
    return _simple(str(kind), schema, name)


def _simple(kind: str, schema: Object, name: str) -> Any:
    if kind in ("integer", "number"):
        return {"amount_total": 2000, "created": 1774008000}.get(name, schema.get("minimum", 1))
    if kind == "boolean":
        return False
    if kind == "null":
        return None
    if schema.get("format") == "date-time":
        return "2026-03-02T11:00:00.000Z"
    if "currency" in name:
        return "usd"
    if name in _URLS or schema.get("format") == "uri":
        return _URLS.get(name, "https://wallet.example/alice")
    return "…"


def _codes(text: str) -> str:
    """Return the sentence about an answer, whose error codes lead to their lines."""
    found = _text(text)
    return re.sub(
        r"<code>(\w+)</code>",
        lambda match: (
            f'<a href="/docs#{match[1]}">{match[0]}</a>' if match[1] in MEANINGS else match[0]
        ),
        found,
    )


def _text(text: str) -> str:
    """Return prose with its `code` marked."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _code(title: str, code: str) -> str:
    return (
        f"<figure><figcaption>{title}</figcaption><pre><code>{escape(code)}</code></pre></figure>"
    )


def files(documents: Iterable[tuple[str, Object]]) -> dict[str, str]:
    """Return the files that `/docs` serves by their names; the style sheet is written by hand."""
    found = {}
    for name, document in documents:
        page = stripe(document) if "v1" in name else native(document)
        found["v1.html" if "v1" in name else "index.html"] = page
        found[name] = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return found
