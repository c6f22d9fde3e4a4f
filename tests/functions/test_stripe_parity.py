"""Every parameter of Stripe's requests: obeyed, or refused, or said to be ignored.

Those of a creation are sent alone and together; each of other requests alone, beside what these
need, with each value that Stripe's own types name.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.v1 import parity
from api.v1.forms import bracketed, from_form, parsed, with_brackets
from api.v1.parity import Does, Parameter
from checkout.domain.ground.errors import ParameterInvalid
from tests.support.basics import NOW
from tests.support.merchant_api import Answer
from tests.support.samples import PAID
from tests.support.stripe_api import (
    CHARGES,
    ENDPOINTS,
    EVENTS,
    PAYMENTS,
    REFUNDS,
    SESSIONS,
    StripeApi,
    a_purchase,
    an_item,
    payment,
)
from tests.support.stripe_parameters import Path, create_session, emptyable, parameters

PARAMETERS: Final = create_session()
CASES: Final = [(path, value) for path, values in PARAMETERS.items() for value in values]
# Values that mean something, in place of "text" and "1".
MEANT: Final[dict[Path, str]] = {
    ("cancel_url",): "https://shop.example/back",
    ("success_url",): "https://shop.example/done",
    ("currency",): "usd",
    ("expand", "0"): "line_items",
    ("expires_at",): str(int(NOW.timestamp()) + 3600),
    ("line_items", "0", "price_data", "currency"): "usd",
    ("line_items", "0", "price_data", "product_data", "images", "0"): "https://a.example/tea.png",
    ("line_items", "0", "price_data", "unit_amount"): "700",
}
ITEM: Final = ("line_items", "0")
PRODUCT: Final = (*ITEM, "price_data", "product_data")
COUNTRIES: Final = ("shipping_address_collection", "allowed_countries", "0")
NAME: Final = ("name_collection", "individual")
FIELD: Final = ("custom_fields", "0")
OPTION: Final = (*FIELD, "dropdown", "options", "0")
LINE: Final = ("line_items", "data", "0")
# Where a session shows a parameter, if not in the parameter's own place.
PLACES: Final[dict[Path, Path]] = {
    PRODUCT: (*LINE, "price", "product"),
    (*ITEM, "price_data", "unit_amount"): (*LINE, "price", "unit_amount"),
    (*ITEM, "price_data"): LINE,
    ITEM: LINE,
}


def obeyed(session: Any, path: Path) -> str | None:
    """Return what the session shows of a parameter, or None if it need not show any."""
    if path[0] == "payment_intent_data":
        return None  # of the payment, when there is one
    if path == ("expand", "0"):
        return "line_items" if "line_items" in session else None
    if path[:2] == NAME and "name_collection" not in session:
        return "false" if path[2] == "enabled" else None
    around = next((each for each in PLACES if path[: len(each)] == each), ())
    shown = session
    for part in (*PLACES.get(around, ()), *path[len(around) :]):
        shown = shown[int(part) if part.isdecimal() else part]
    return str(shown).lower() if isinstance(shown, bool) else str(shown)


def beside(path: Path, value: str) -> dict[Path, str]:
    """Return what Stripe requires beside a parameter."""
    if path == (*NAME, "optional"):
        return {(*NAME, "enabled"): "true"}
    if path[0] != "custom_fields":
        return {}
    kinds = [each for each in (path[2], value) if each in ("dropdown", "numeric", "text")]
    kind = kinds[0] if kinds else "text"
    rest: dict[Path, str] = {
        (*FIELD, "key"): "gift",
        (*FIELD, "type"): kind,
        (*FIELD, "label", "type"): "custom",
        (*FIELD, "label", "custom"): "Gift",
    }
    choice: dict[Path, str] = {(*OPTION, "label"): "Tea", (*OPTION, "value"): "tea"}
    return {**rest, **(choice if kind == "dropdown" else {})}


def with_parameters(chosen: dict[Path, str]) -> dict[str, Any]:
    """A creation with these parameters and what they need."""
    needed = {name: it for each in chosen.items() for name, it in beside(*each).items()}
    asked = purchase()
    for path, value in {**needed, **chosen}.items():
        with_parameter(asked, path, MEANT.get(path, value))
    return asked


def test_the_types_list_all_parameters() -> None:
    assert len(PARAMETERS) >= 320
    assert len(CASES) >= 600


def with_parameter(values: dict[str, Any], path: Path, value: str) -> None:
    """Put a value into nested parameters, whose lists here are dicts with numbers for names."""
    place = values
    for part in path[:-1]:
        place = place.setdefault(part, {})
    place[path[-1]] = value


def purchase() -> dict[str, Any]:
    """A creation whose lists are dicts, and whose answer shows the line items whole."""
    return a_purchase(line_items={"0": an_item()}, expand={"9": "line_items.data.price.product"})


@cache
def fate(path: Path, rows: Sequence[Parameter] = parity.CREATE_SESSION) -> Parameter:
    found = [row for row in rows if fits(row.path, path)]
    assert found, f"no row for {bracketed(path)}"
    return max(found, key=lambda row: row.path.count("["))


def fits(pattern: str, path: Path) -> bool:
    """Tell whether a row is of this parameter or, if it is not taken, of what is around it."""
    parts = pattern.replace("]", "").split("[")
    generic = ["" if part == "0" else "*" if part == "some" else part for part in path]
    same = zip(parts, generic, strict=False)
    return len(parts) <= len(generic) and all(one in (other, "*") for one, other in same)


def check(path: Path, value: str, answer: Answer) -> None:
    """Fail unless the parameter was refused by name, said to be ignored, or obeyed."""
    name = bracketed(path)
    row = fate(path)
    if answer.status != 200:
        assert answer.status == 400, answer
        error = answer.json["error"]
        assert error["param"] == name, answer
        assert row.does is Does.REFUSED or row.only or row.does is Does.TAKEN
        return
    ignored = answer.headers.get("ignored-parameters", "").split(", ")
    assert row.does is not Does.REFUSED, name
    if row.does is Does.IGNORED:
        assert name in ignored, name
        return
    assert name not in ignored
    assert obeyed(answer.json, path) in (value, None), name


@pytest.mark.parametrize(
    ("path", "values"), PARAMETERS.items(), ids=[bracketed(path) for path in PARAMETERS]
)
def test_no_parameter_is_dropped_silently(path: Path, values: list[str], shared: StripeApi) -> None:
    for value in values:
        meant = MEANT.get(path, value)
        answer = shared.form(SESSIONS, with_parameters({path: value}))
        check(path, meant, answer)
        if path in MEANT or fate(path).path.endswith("[*]"):
            assert answer.status == 200, answer


@pytest.fixture(scope="module")
def shared() -> StripeApi:
    return StripeApi()


def test_three_hundred_combinations_are_refused_or_obeyed_whole(shared: StripeApi) -> None:
    rng = random.Random(16)
    accepted = 0
    every = {path: values for path, values in PARAMETERS.items() if values}
    accepted_alone = {
        path: taken
        for path, values in every.items()
        if (taken := [each for each in values if not refused_alone(path, each)])
    }
    for number in range(300):
        # Every other one is of parameters that alone are accepted, so that combinations are too.
        among = every if number % 2 else accepted_alone
        paths = rng.sample(list(among), rng.randint(2, 6))
        chosen = {path: rng.choice(among[path]) for path in paths}
        answer = shared.form(SESSIONS, with_parameters(chosen))
        if answer.status != 200:
            assert answer.status == 400, answer
            param = answer.json["error"]["param"]
            named = [path for path in chosen if bracketed(path).startswith(param)]
            assert named, (param, chosen)
            continue
        accepted += 1
        for path, value in chosen.items():
            check(path, MEANT.get(path, value), answer)
    assert accepted >= 100


def refused_alone(path: Path, value: str) -> bool:
    row = fate(path)
    return (
        row.does is Does.REFUSED
        or bool(row.only and value not in row.only)
        or path == (*ITEM, "price_data", "unit_amount_decimal")
        or (path == ("expand", "0") and value != "line_items")
        or (path == COUNTRIES and value in ("ZZ", "text"))
    )


MONEY: Final = (
    "tax", "discount", "promotion", "shipping", "fee", "transfer", "on_behalf", "recurring",
    "trial", "optional_items", "adjustable", "invoice_creation", "capture", "currency_options",
)  # fmt: skip


def test_nothing_that_changes_money_is_ignored() -> None:
    """Refuse what sounds of money, or ignore it only with the value that means none."""
    harmless = {
        "line_items[][price_data][product_data][tax_code]",  # which tax: there is none
        "line_items[][price_data][product_data][tax_details]",
        "line_items[][price_data][tax_behavior]",
        "payment_intent_data[shipping]",  # an address
    }
    for row in parity.CREATE_SESSION:
        if row.does is Does.IGNORED and any(word in row.path for word in MONEY):
            assert row.only or row.path in harmless, row.path


# --- other requests

# By request: the name of Stripe's types of its parameters, and our rows of them.
ROUTES: Final = {
    "create refund": ("RefundCreate", parity.CREATE_REFUND),
    "update refund": ("RefundUpdate", parity.UPDATE_REFUND),
    "list refunds": ("RefundList", parity.LIST_REFUNDS),
    "update session": ("checkout.SessionUpdate", parity.UPDATE_SESSION),
    "list sessions": ("checkout.SessionList", parity.LIST_SESSIONS),
    "list events": ("EventList", parity.LIST_EVENTS),
    "list payments": ("PaymentIntentList", parity.LIST_PAYMENTS),
    "list charges": ("ChargeList", parity.LIST_CHARGES),
    "read payment": ("PaymentIntentRetrieve", parity.ONE),
    "create endpoint": ("WebhookEndpointCreate", parity.CREATE_ENDPOINT),
    "update endpoint": ("WebhookEndpointUpdate", parity.UPDATE_ENDPOINT),
}
LISTS: Final = {
    "list refunds": REFUNDS,
    "list sessions": SESSIONS,
    "list events": EVENTS,
    "list payments": PAYMENTS,
    "list charges": CHARGES,
}
ENDPOINT: Final = {"url": "https://shop.example/hooks", "enabled_events": ["*"]}


def sent(api: StripeApi, route: str, path: Path, value: str) -> Answer:
    """Send the request with the parameter beside what it needs."""
    if route == "create session":
        asked = purchase()
        with_parameter(asked, path, value)
        return api.form(SESSIONS, asked)
    paid, asked = payment(api.store(**PAID)), dict[str, Any]()
    if route == "create refund":
        asked = {"amount": 10} | ({} if path == ("charge",) else {"payment_intent": paid})
    if route == "create endpoint":
        asked = {"url": ENDPOINT["url"], "enabled_events": {"9": "*"}}
    with_parameter(asked, path, value)
    if route in LISTS:
        return api.ask(LISTS[route], asked)
    if route == "read payment":
        return api.ask(f"{PAYMENTS}/{paid}", asked)
    if route == "update session":
        return api.form(f"{SESSIONS}/{api.form(SESSIONS, a_purchase()).json['id']}", asked)
    if route == "create refund":
        return api.form(REFUNDS, asked, key=api.refunder)
    if route == "update refund":
        made = api.form(REFUNDS, {"payment_intent": paid, "amount": 10}, key=api.refunder).json
        return api.form(f"{REFUNDS}/{made['id']}", asked, key=api.refunder)
    return to_endpoints(api, asked, new=route == "create endpoint")


def to_endpoints(api: StripeApi, asked: dict[str, Any], *, new: bool) -> Answer:
    """Create or change an endpoint; it is deleted again: a merchant has at most eight."""
    made = {**ENDPOINT, "description": "Till", "metadata": {"a": "1"}}
    changed = "" if new else f"/{api.manage('POST', ENDPOINTS, made).json['id']}"
    answer = api.manage("POST", ENDPOINTS + changed, asked)
    for each in api.manage("GET", ENDPOINTS).json["data"]:
        api.manage("DELETE", f"{ENDPOINTS}/{each['id']}")
    return answer


def types_of(kind: str) -> tuple[str, str]:
    """Return the module and the name of Stripe's types of a request."""
    module = re.sub(r"(?=[A-Z])", "_", kind).lower()
    return f"{module}_params", f"{kind.split('.')[-1]}Params"


@pytest.mark.parametrize("route", ["create session", *ROUTES])
def test_what_stripe_unsets_by_an_empty_value_is_unset(route: str) -> None:
    """Its types call these emptyable: there is nothing of it afterwards, and no error."""
    api = StripeApi()
    kind, rows = ROUTES.get(route, ("checkout.SessionCreate", parity.CREATE_SESSION))
    for path in emptyable(*types_of(kind)):
        answer = sent(api, route, path, "")
        known = [row for row in rows if fits(row.path, path)]
        if answer.status == 400 and not known:
            assert answer.code == "parameter_unknown", "as any value of it is"
            continue
        assert answer.status == 200, (bracketed(path), answer)
        if fate(path, rows).does is not Does.TAKEN:
            assert bracketed(path) in answer.headers["ignored-parameters"].split(", ")
        else:
            assert not answer.json.get(path[0]), bracketed(path)


@pytest.mark.parametrize("route", ROUTES)
def test_no_parameter_of_another_route_is_dropped_silently(route: str) -> None:
    api, (kind, rows) = StripeApi(), ROUTES[route]
    tried = 0
    for path, values in parameters(*types_of(kind)).items():
        name = bracketed(path)
        for value in values if "enabled_events" not in path else values[:3]:
            tried += 1
            answer = sent(api, route, path, value)
            if answer.status != 200:
                assert answer.status in (400, 404), (name, answer)
                param = str(answer.json["error"].get("param"))
                assert name.startswith(param.split("[")[0]), (name, answer)
                continue
            does = fate(path, rows).does
            assert does is not Does.REFUSED, name
            ignored = answer.headers.get("ignored-parameters", "")
            assert does is Does.TAKEN or name in ignored.split(", "), name
    assert tried >= 1


def test_a_parameter_of_money_is_never_ignored_but_with_the_value_that_means_none() -> None:
    """`refund_application_fee` and `reverse_transfer` name money that others would have got."""
    ignored = [row for _, rows in ROUTES.values() for row in rows if row.does is Does.IGNORED]
    assert {row.path for row in ignored if row.only != ("false",)} <= {"instructions_email"}


# --- the amount

# Stripe's documentation, "Supported currencies": the divisor of an amount's integer.
ZERO: Final = ("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv",
               "xaf", "xof", "xpf")  # fmt: skip
THREE: Final = ("bhd", "jod", "kwd", "omr", "tnd")
HUNDREDS: Final = ("isk", "ugx")  # two digits, which must be zero
TWO: Final = ("usd", "eur", "gbp", "huf", "twd", "mxn", "zar", "try")
# ISO 4217: what our own amounts are in, and the wallet.
ISO: Final = {**dict.fromkeys(ZERO, 0), **dict.fromkeys(THREE, 3), **dict.fromkeys(HUNDREDS, 0),
              **dict.fromkeys(TWO, 2), "mga": 2}  # fmt: skip


def stripes_sum(currency: str, items: list[tuple[int, int]]) -> Decimal:
    """The sum that Stripe would charge, in whole units of the currency."""
    digits = 0 if currency in ZERO else 3 if currency in THREE else 2
    total = Decimal(sum(price * count for price, count in items))
    return total.scaleb(-digits)


@settings(max_examples=300)
@given(
    currency=st.sampled_from([*ZERO, *THREE, *HUNDREDS, *TWO]),
    items=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 10**6), st.integers(0, 10**9).map(lambda n: n * 100)),
            st.integers(1, 1000),
        ),
        min_size=1,
        max_size=5,
    ),
    spelling=st.sampled_from(["unit_amount", "unit_amount_decimal"]),
    upper=st.booleans(),
)
def test_an_accepted_request_charges_what_stripe_would(
    currency: str, items: list[tuple[int, int]], spelling: str, upper: bool
) -> None:
    api = CHARGING
    secret = KEYS.get(currency)
    if secret is None:
        secret, _ = api.join(f"mer_{currency}", asset_code=currency.upper(), asset_scale=4)
        KEYS[currency] = secret
    code = currency.upper() if upper else currency
    asked = []
    for price, count in items:
        item = an_item(quantity=count)
        item["price_data"] = {
            "currency": code,
            spelling: price,
            "product_data": {"name": "Tea"},
        }
        asked.append(item)
    answer = api.form(SESSIONS, a_purchase(line_items=asked), key=secret)
    whole = stripes_sum(currency, items)
    step = 10 if currency in THREE else 100 if currency in HUNDREDS else 1
    uneven = any(price % step for price, _ in items)
    if answer.status != 200:
        assert uneven or whole == 0 or answer.code == "amount_too_large", answer
        return
    assert not uneven
    session = api.stored(answer.json["id"])
    assert Decimal(session.amount_total) / 10 ** ISO[currency] == whole
    assert Decimal(session.receive.value) / 10**4 == whole  # what the wallet is asked for
    digits = 0 if currency in ZERO else 3 if currency in THREE else 2
    assert Decimal(answer.json["amount_total"]) / 10**digits == whole


@pytest.mark.parametrize("currency", [*THREE, *HUNDREDS])
def test_a_price_that_stripe_refuses_is_refused(currency: str) -> None:
    api = StripeApi()
    secret, _ = api.join(f"mer_{currency}", asset_code=currency.upper(), asset_scale=3)
    even, uneven = (1230, 1235) if currency in THREE else (1300, 1350)
    for price, status in ((even, 200), (uneven, 400)):
        items = [an_item(price_data={"currency": currency, "unit_amount": price})]
        assert api.form(SESSIONS, a_purchase(line_items=items), key=secret).status == status


CHARGING: Final = StripeApi()
KEYS: Final[dict[str, str]] = {}


# --- the parser


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ("limit=5&starting_after=x", {"limit": 5, "starting_after": "x"}),
        ("created[gte]=1&created[lt]=2", {"created": {"gte": 1, "lt": 2}}),
        ("created=1", {"created": 1}),
        ("expand[]=data.a&expand[]=data.b", {"expand": ["data.a", "data.b"]}),
        ("expand[5]=data.a&expand[1]=data.b", {"expand": ["data.b", "data.a"]}),
        ("expand%5B0%5D=data.%C3%A4", {"expand": ["data.ä"]}),
        ("limit=-0", {"limit": 0}),
        ("", {}),
    ],
)
def test_brackets_are_read_as_nested_values(raw: str, values: dict[str, Any]) -> None:
    assert parsed(from_form(raw), parity.LIST_SESSIONS).values == values


@given(st.text(max_size=60))
def test_no_form_makes_the_parser_fail(text: str) -> None:
    try:
        parsed(from_form(text), parity.CREATE_SESSION)
    except Exception as error:
        if not type(error).__module__.startswith("checkout.domain"):
            raise


def test_a_path_is_written_in_brackets() -> None:
    for native, written in (
        ("line_items[0].price_data.currency", "line_items[0][price_data][currency]"),
        ("line_items[10].quantity", "line_items[10][quantity]"),
        ("created[gte]", "created[gte]"),
        ("Idempotency-Key", "Idempotency-Key"),
    ):
        assert with_brackets(native) == written


def test_too_many_parameters_are_refused() -> None:
    with pytest.raises(ParameterInvalid):
        from_form("&".join(["a=1"] * 20_001))
