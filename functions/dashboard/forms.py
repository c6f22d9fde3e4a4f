"""Read the fields of forms as models: text, choices, days, and the limits of refunds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from checkout.domain.ground.errors import AmountTooLarge
from checkout.domain.ground.money import TOTAL_MAX
from checkout.domain.merchant.people import RefundCap
from dashboard.dependencies import PageRequest
from dashboard.texts import OVERLAPS
from dashboard.view import sum_of

_DAY: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


class Fields(BaseModel):
    """The fields of a form. Missing required fields are read as "", and unknown fields ignored."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, typed: dict[str, str]) -> dict[str, str]:
        required = {name: "" for name, each in cls.model_fields.items() if each.is_required()}
        return required | typed


def message(sentence: str) -> WrapValidator:
    """Return a validator whose error is `sentence`, for a value that the field's type rejects."""

    def checked(typed: Any, accept: Callable[[Any], Any]) -> Any:
        try:
            return accept(typed)
        except ValueError:
            raise PydanticCustomError("parameter_invalid", sentence) from None

    return WrapValidator(checked)


def _midnight(typed: str) -> datetime:
    """Return the beginning (in UTC) of a typed day in this century. Raise ValueError."""
    day = date.fromisoformat(typed.strip())
    if not _DAY.fullmatch(typed.strip()):
        raise ValueError(typed)
    return datetime.combine(day, time(), UTC)


def _seconds(typed: str) -> timedelta:
    """Return the chosen time for which the old key stays valid. Raise ValueError."""
    if typed not in OVERLAPS:
        raise ValueError(typed)
    return timedelta(seconds=int(typed))


Text = Annotated[str, AfterValidator(str.strip)]
OR_NONE: Final = BeforeValidator(lambda typed: typed or None)
Yes = Annotated[bool, BeforeValidator(lambda typed: typed == "yes")]
Day = Annotated[datetime, BeforeValidator(_midnight)]  # the beginning of a day, in UTC
DayOrNone = Annotated[
    datetime | None, BeforeValidator(lambda typed: _midnight(typed) if typed.strip() else None)
]


class RollForm(Fields):
    """The time for which a replaced key or secret stays valid (the overlap)."""

    overlap: Annotated[
        timedelta, BeforeValidator(_seconds), message("Choose how long the old one stays valid.")
    ]


def cap_of(request: PageRequest) -> RefundCap | None:
    """Return the typed limits of refunds, or None if both fields are empty.

    Raise ParameterInvalid, AmountTooLarge.
    """
    once, day = (_limit_of(request, name) for name in ("once", "day"))
    return None if once is None and day is None else RefundCap(once=once, day=day)


def _limit_of(request: PageRequest, name: str) -> int | None:
    if not request.form.get(name, "").strip():
        return None
    found = request.amount(name)
    if found > TOTAL_MAX:
        most = sum_of(request.key, TOTAL_MAX)
        raise AmountTooLarge(f"A limit must be at most {most}.", param=name)
    return found
