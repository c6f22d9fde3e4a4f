"""What a payment link offers, as the link's page and its till (sales screen) show it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from checkout.domain.ground.addresses import Fault
from checkout.domain.ground.money import from_minor_units
from checkout.domain.ground.typed_amount import clear_spellings
from checkout.domain.links import AMOUNT, PaymentLink
from checkout.domain.merchant.reach import Effect, allows
from checkout.domain.merchant.record import Merchant
from checkout.services import PayServices
from open_payments.urls import split
from pay import forms, looks
from pay.forms import Group
from pay.language import Reader
from pay.view import initial_of, shop_of


def shown_offer(
    services: PayServices, link: PaymentLink, merchant: Merchant, reads: Reader
) -> dict[str, Any]:
    """Return the link as its page shows it, without a price if customers choose the amount.

    If customers can choose the quantity, `sums` are the totals for one item, two items and so on.
    """
    price = partial(price_of, link, merchant, reads)
    path = path_of(services, link)
    mark = looks.logo_mark(merchant.logo)
    counts = range(1, link.offered + 1) if link.quantity_max > 1 else ()
    return {
        **shop_of(merchant, link.success_url),
        "name": link.name,
        "description": link.description,
        "picture": link.image,
        "goods_initial": initial_of(link.name),
        "price": None if link.open_amount else price(link.unit_amount),
        "sums": tuple(price(link.unit_amount * each) for each in counts),
        "sells": link.sells and allows(merchant, Effect.SALE),
        "limited": link.limited,
        "stopped": link.stopped_at is not None,
        "path": path,
        "paths": {"logo": f"{path}/logo?v={mark}" if mark else None},
    }


def amount_group(
    link: PaymentLink,
    merchant: Merchant,
    reads: Reader,
    typed: Mapping[str, str],
    wrong: Mapping[str, Fault],
    wished: str = "",
) -> Group:
    """Return the field for an amount that customers choose.

    Until the customer types an amount, the field has the text `wished`, if the link allows this
    amount.
    """
    assert link.open_amount is not None
    text, scale = typed.get(AMOUNT, ""), merchant.asset_scale
    return forms.amount_group(
        link.open_amount,
        partial(price_of, link, merchant, reads),
        reads,
        typed,
        wrong,
        usual=wished if link.chosen({AMOUNT: wished}, merchant) else "",
        clear=clear_spellings(text, currency=link.currency, wallet_scale=scale),
    )


def wrong_amount(typed: Mapping[str, str]) -> dict[str, Fault]:
    """Return what is wrong with an amount that the link does not allow."""
    return {AMOUNT: Fault.INVALID if typed.get(AMOUNT) else Fault.MISSING}


def price_of(link: PaymentLink, merchant: Merchant, reads: Reader, minor: int) -> str:
    """Return an amount in minor units of the link's currency, as the reader writes it."""
    scale = merchant.asset_scale
    return reads.price(from_minor_units(minor, currency=link.currency, wallet_scale=scale))


def path_of(services: PayServices, link: PaymentLink) -> str:
    """Return the path of the link's page on this origin."""
    return f"{split(services.base_url).path}/buy/{link.id}"
