"""The limits of refunds, of keys and of members, as they are typed and as they are shown."""

from __future__ import annotations

from checkout.domain.errors import AmountTooLarge
from checkout.domain.money import TOTAL_MAX
from checkout.domain.people import Actor, RefundCap
from checkout.domain.typed_amount import typed_amount
from dashboard.view import sum_of


def cap_of(form: dict[str, str], key: Actor) -> RefundCap | None:
    """Return the typed limits of refunds, or None if both fields are empty."""
    once, day = (_limit_of(form.get(name, ""), name, key) for name in ("once", "day"))
    return None if once is None and day is None else RefundCap(once=once, day=day)


def limits_of(key: Actor) -> str | None:
    """Return the limits of its refunds in words, None without any."""
    cap = key.refund_cap
    if cap is None:
        return None
    once = f"{sum_of(key, cap.once)} each" if cap.once is not None else None
    day = f"{sum_of(key, cap.day)} a day" if cap.day is not None else None
    return "refunds at most " + " and ".join(each for each in (once, day) if each)


def _limit_of(typed: str, name: str, key: Actor) -> int | None:
    if not typed.strip():
        return None
    found = typed_amount(typed, currency=key.asset_code, wallet_scale=key.asset_scale, param=name)
    if found > TOTAL_MAX:
        raise AmountTooLarge(f"A limit must be at most {sum_of(key, TOTAL_MAX)}.", param=name)
    return found
