"""A merchant's payment links: create, list, stop and start them, and set their stock.

A link's name and price never change, because the link may be printed. If customers choose the
amount, the bounds of the amount never change either. A merchant who needs another name, price or
bounds creates a new link.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from checkout.domain.ground.errors import (
    AmountTooSmall,
    Conflict,
    ParameterInvalid,
    ParameterMissing,
    ResourceMissing,
)
from checkout.domain.ground.grammar import (
    LINK_ID,
    is_http,
    picture_url,
    redirect_url,
)
from checkout.domain.ground.ids import new_link_id, new_nonce, new_session_id
from checkout.domain.ground.money import (
    ROUNDED_FROM,
    UNIT_AMOUNT_MAX,
    from_minor_units,
    minor_unit_digits,
    to_wallet,
)
from checkout.domain.ground.names import is_name, shown
from checkout.domain.ground.typed_amount import typed_amount
from checkout.domain.links import (
    AT_ONCE_MAX,
    NAME_MAX,
    STOCK_MAX,
    OpenAmount,
    PaymentLink,
    quantity_of,
    rows_for,
)
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.reach import Effect, require
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.collect import (
    LABEL_MAX,
    OPTION_MAX,
    OPTIONS_MAX,
    Collect,
    Detail,
    Place,
    Question,
    QuestionKind,
    known_countries,
)
from checkout.flows import audit, merchants
from checkout.flows.cursors import CursorPage, position_of, with_cursor
from checkout.flows.idempotency import Reserve
from checkout.flows.session import details
from checkout.services import DashboardServices
from open_payments.models import Amount

PAGE: Final = 50
DESCRIPTION_MAX: Final = 500  # characters
# The default for the largest amount that customers can choose, so that this service, and not the
# wallet, refuses a mistyped amount. The number is of whole units, such as dollars or euros.
# Exception: in a currency without decimals, the limit is 100 times this number.
LARGEST_USUAL: Final = 10_000
OPTIONAL: Final = "optional"
REQUIRED: Final = "required"
_STOCK: Final = re.compile(r"[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class TypedQuestion:
    """A question as typed. `options` are the choices of a list, separated by commas."""

    label: str
    kind: str
    required: bool
    options: str


def list_page(
    services: DashboardServices, key: Actor, after: str | None
) -> CursorPage[PaymentLink]:
    """Return a page of the merchant's links, newest first. Raise CursorInvalid."""
    position = position_of(key.merchant, after, LINK_ID)
    page = services.links.page(key.merchant, limit=PAGE, after=position)
    return with_cursor(key.merchant, page)


def get(services: DashboardServices, key: Actor, link_id: str) -> PaymentLink:
    """Return the merchant's link. Raise ResourceMissing, also for another merchant's link."""
    link = services.links.get(link_id) if LINK_ID.fullmatch(link_id) else None
    if link is None or link.merchant != key.merchant:
        raise ResourceMissing("No such payment link.")
    return link


def create(
    services: DashboardServices,
    key: Actor,
    *,
    name: str,
    amount: str,
    stock: str,
    success_url: str,
    asks: Mapping[Detail | Place, str] | None = None,
    ships_to: str = "",
    questions: Sequence[TypedQuestion] = (),
    description: str = "",
    image: str = "",
    at_once: str = "",
    smallest: str = "",
    largest: str = "",
    suggestions: Sequence[str] = (),
    reserve: Reserve[PaymentLink] | None = None,
) -> PaymentLink:
    """Create a link in the currency of the merchant's wallet, from the typed values.

    If `stock` is empty, the stock is unlimited. If `success_url` is empty, customers stay on the
    receipt's page. `asks` maps details and addresses to `required` or `optional`; customers are
    not asked for those that are empty or absent. `ships_to` has country codes, or is empty for all
    countries. `at_once` is the number of items that a customer can buy at once; empty means one.
    If `smallest` is given instead of `amount`, customers choose the amount, up to `largest`. If
    `largest` is empty, the limit is LARGEST_USUAL. `reserve` makes the stored answer to the
    request's idempotency key, which is written together with the link.
    Raise MerchantUnproven, MerchantSuspended, ParameterMissing, ParameterInvalid, AmountTooSmall,
    AmountNotRepresentable, UrlInvalid, ResourceMissing, Conflict, and KeyHeld with `reserve`.
    """
    collect = _collect(asks or {}, ships_to, questions)
    merchant = merchants.get(services.merchants, key.merchant)
    require(merchant, Effect.NEW_LINK)
    open_amount = _open_amount(merchant, smallest, largest, suggestions)
    if open_amount is None:
        unit_amount = _amount(merchant, amount)
    elif amount.strip() or at_once.strip() not in ("", "1"):
        raise ParameterInvalid(
            "If customers choose the amount, leave the price and the largest quantity empty.",
            param="smallest",
        )
    else:
        unit_amount = (*open_amount.suggestions, open_amount.smallest)[0]
    left = _stock(stock) if stock.strip() else None
    most = _at_once(merchant, at_once.strip(), unit_amount)
    link = PaymentLink(
        id=new_link_id(services.random_bytes),
        merchant=key.merchant,
        created_at=services.clock.now(),
        name=_name(name),
        unit_amount=unit_amount,
        currency=merchant.asset_code.lower(),
        success_url=_success_url(services, merchant, success_url.strip()),
        left=left,
        rows=rows_for(left, most=most),
        asked=tuple(each for each in Detail if each in collect.asked),
        required=tuple(each for each in Detail if each in collect.required),
        collect_json=collect.to_json() if collect.places or collect.questions else None,
        description=_description(description),
        image=_image(services, image.strip()),
        most=most,
        open_amount=open_amount,
    )
    if collect:
        details.wrap_key(services, merchant.id)
    services.links.add(link, reserve(link, new_nonce(services.random_bytes)) if reserve else None)
    audit.note(services, key, Action.LINK_CREATED, link.id)
    return link


def stop(services: DashboardServices, key: Actor, link_id: str) -> None:
    """Stop the link. Purchases that began earlier can still be paid. Raise ResourceMissing."""
    link = get(services, key, link_id)
    if link.stopped_at is None:
        services.links.set_stopped(link, services.clock.now())
        audit.note(services, key, Action.LINK_STOPPED, link.id)


def start(services: DashboardServices, key: Actor, link_id: str) -> None:
    """Start a stopped link again. Raise ResourceMissing."""
    link = get(services, key, link_id)
    if link.stopped_at is not None:
        services.links.set_stopped(link, None)
        audit.note(services, key, Action.LINK_STARTED, link.id)


def set_stock(
    services: DashboardServices, key: Actor, link_id: str, *, read: str, left: str
) -> None:
    """Set the number of items left.

    `read` is the number that the page showed. Raise ParameterInvalid, ResourceMissing, and Conflict
    if the number has changed since then.
    """
    link = get(services, key, link_id)
    wanted = _stock(left)
    if not link.limited:
        raise ParameterInvalid("This link has no stock limit.", param="left")
    if read != str(link.left) or not services.links.set_left(link, wanted):
        raise Conflict(
            "An item was taken or returned to the stock in the meantime. Check how many are left "
            "now."
        )
    audit.note(services, key, Action.LINK_STOCKED, link.id)


def _collect(
    asks: Mapping[Detail | Place, str], ships_to: str, questions: Sequence[TypedQuestion]
) -> Collect:
    """Return the details that the link asks for, each marked as required or optional."""
    chosen = {each: wish for each in (*Detail, *Place) if (wish := asks.get(each, ""))}
    if set(chosen.values()) - {OPTIONAL, REQUIRED}:
        raise ParameterInvalid(
            "Choose for each detail whether it is required, optional, or not requested.",
            param="asks",
        )
    countries = known_countries(re.split(r"[\s,;]+", ships_to), param="ships_to")
    if countries and Place.SHIPPING not in chosen:
        raise ParameterInvalid(
            "Countries apply only to a shipping address, so ask for the shipping address, too.",
            param="ships_to",
        )
    return Collect(
        asked=frozenset(chosen),
        required=frozenset(each for each, wish in chosen.items() if wish == REQUIRED),
        ships_to=countries,
        questions=tuple(
            _question(number, each)
            for number, each in enumerate(questions, 1)
            if each.label.strip()
        ),
    )


def _question(number: int, typed: TypedQuestion) -> Question:
    param = f"question_{number}"
    label = " ".join(typed.label.split())
    if not is_name(label, LABEL_MAX):
        raise ParameterInvalid(
            f"A question must be 1 to {LABEL_MAX} printable characters.", param=param
        )
    if typed.kind not in list(QuestionKind):
        raise ParameterInvalid("Choose the kind of answer.", param=param)
    kind = QuestionKind(typed.kind)
    options = list(dict.fromkeys(filter(None, map(str.strip, typed.options.split(",")))))
    if kind is QuestionKind.DROPDOWN:
        right = all(len(each) <= OPTION_MAX and shown(each) for each in options)
        if not right or not 1 <= len(options) <= OPTIONS_MAX:
            raise ParameterInvalid(
                f"Give 1 to {OPTIONS_MAX} choices with commas between them, each of at most "
                f"{OPTION_MAX} printable characters.",
                param=param,
            )
    return Question(
        key=f"question{number}",
        label=label,
        kind=kind,
        required=typed.required,
        options=tuple((each, each) for each in options) if kind is QuestionKind.DROPDOWN else (),
    )


def _at_once(merchant: Merchant, typed: str, unit_amount: int) -> int | None:
    """Return how many items a customer may buy at once. None means one item."""
    if not typed or typed == "1":
        return None
    most = quantity_of(typed, AT_ONCE_MAX)
    if most is None:
        raise ParameterInvalid(
            f"The number of items that a customer can buy at once must be from 1 to {AT_ONCE_MAX}.",
            param="at_once",
        )
    code, scale = merchant.asset_code, merchant.asset_scale
    to_wallet(unit_amount * most, currency=code, asset_code=code, asset_scale=scale)
    return most


def _description(typed: str) -> str | None:
    text = " ".join(typed.split())
    if len(text) > DESCRIPTION_MAX or not shown(text):
        raise ParameterInvalid(
            f"The description must be at most {DESCRIPTION_MAX} printable characters.",
            param="description",
        )
    return text or None


def _image(services: DashboardServices, typed: str) -> str | None:
    if not typed:
        return None
    return picture_url(typed, base_is_http=is_http(services.base_url), param="image")


def _name(typed: str) -> str:
    name = typed.strip()
    if not name:
        raise ParameterMissing("Give the item a name. Your customers see this name.", param="name")
    if not is_name(name, NAME_MAX):
        raise ParameterInvalid(
            f"The name must be 1 to {NAME_MAX} printable characters.", param="name"
        )
    return name


def _amount(merchant: Merchant, typed: str, param: str = "amount", called: str = "price") -> int:
    code, scale = merchant.asset_code, merchant.asset_scale
    amount = typed_amount(typed, currency=code, wallet_scale=scale, param=param)
    if amount > UNIT_AMOUNT_MAX:
        most = from_minor_units(UNIT_AMOUNT_MAX, currency=code, wallet_scale=scale)
        raise ParameterInvalid(f"The {called} must be at most {most}.", param=param)
    if amount == 0:
        raise AmountTooSmall(f"The {called} must be more than zero.", param=param)
    to_wallet(amount, currency=code, asset_code=code, asset_scale=scale)
    return amount


def _open_amount(
    merchant: Merchant, smallest: str, largest: str, suggestions: Sequence[str]
) -> OpenAmount | None:
    """Return the bounds of the amounts that customers choose, or None if all texts are empty."""
    suggested = [each for each in suggestions if each.strip()]
    if not (smallest.strip() or largest.strip() or suggested):
        return None
    code, scale = merchant.asset_code, merchant.asset_scale
    least = _amount(merchant, smallest, "smallest", "smallest amount")
    units = to_wallet(least, currency=code, asset_code=code, asset_scale=scale)
    if units.value < ROUNDED_FROM:  # a payment that loses one unit by conversion never completes
        few = Amount(ROUNDED_FROM, code, scale)
        raise AmountTooSmall(f"The smallest amount must be at least {few}.", param="smallest")
    usual = LARGEST_USUAL * 10 ** max(2, minor_unit_digits(code, wallet_scale=scale))
    most = min(usual, UNIT_AMOUNT_MAX)
    if largest.strip():
        most = _amount(merchant, largest, "largest", "largest amount")
    if most < least:
        raise ParameterInvalid("The largest amount is below the smallest.", param="largest")
    amounts = sorted({_amount(merchant, each, "suggestions", "suggestion") for each in suggested})
    if any(not least <= each <= most for each in amounts):
        raise ParameterInvalid(
            "A suggestion is not between the smallest and the largest amount.", param="suggestions"
        )
    return OpenAmount(least, most, tuple(amounts))


def _stock(typed: str) -> int:
    text = typed.strip()
    if not _STOCK.fullmatch(text) or int(text) > STOCK_MAX:
        raise ParameterInvalid(
            f"The stock must be a whole number from 0 to {STOCK_MAX}.", param="stock"
        )
    return int(text)


def _success_url(services: DashboardServices, merchant: Merchant, typed: str) -> str | None:
    if not typed:
        return None
    redirect_url(
        typed,
        session_id=new_session_id(services.random_bytes, test=services.test),
        base_is_http=is_http(services.base_url),
        param="success_url",
        hosts=merchant.return_hosts,
    )
    return typed
