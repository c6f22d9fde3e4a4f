"""The parameters of a new session, after the form of the request was checked.

This module rejects what a check of the form cannot detect: items in several currencies, a currency
other than the merchant wallet's, a total out of bounds, and unsafe URLs.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.ground.errors import CurrencyMismatch, CurrencyNotSupported
from checkout.domain.ground.grammar import picture_url, redirect_url
from checkout.domain.ground.money import to_wallet, total
from checkout.domain.ground.parts import part_of
from checkout.domain.merchant.record import ApiKey
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.session.record import Purchase, Session, Status

_KEPT: Final = tuple(each.name for each in fields(Purchase))


@dataclass(frozen=True, kw_only=True)
class NewSession(Purchase):
    """The validated parameters.

    `metadata_json` is a JSON object. The URLs may contain the placeholder for the session's id. If
    `expires_at` is set, it replaces `expires_in_seconds`; the caller must have checked its bounds.
    `customer_email` is encrypted before it is stored (flows/session/create.py). Logs do not show
    this address.
    """

    metadata_json: str = "{}"
    expires_in_seconds: int = 86_400
    expires_at: datetime | None = None
    customer_email: str | None = field(default=None, repr=False)

    def fingerprint(self) -> str:
        """Return the SHA-256 in hex of the parameters.

        Equal requests have equal fingerprints. The order of the keys makes no difference, and a
        default value may be written or left out. An absent optional field is not hashed, so a field
        that a later release adds changes no fingerprint.
        """
        parameters = asdict(self, dict_factory=_present)
        parameters["metadata_json"] = json.loads(self.metadata_json)
        canonical = json.dumps(parameters, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def opened(
        self,
        key: ApiKey,
        *,
        session_id: str,
        writer: str,
        now: datetime,
        base_is_http: bool,
        request_id: str | None = None,
    ) -> Session:
        """Return the open session for the merchant of `key`.

        Raises CurrencyMismatch, CurrencyNotSupported, AmountTooSmall, AmountTooLarge,
        AmountNotRepresentable, UrlInvalid.
        """
        currency = self._currency(key)
        amount_total = total([(item.unit_amount, item.quantity) for item in self.line_items])
        for number, item in enumerate(self.line_items):
            if item.image is not None:
                place = f"line_items[{number}].price_data.product_data.image"
                picture_url(item.image, base_is_http=base_is_http, param=place)
        receive = to_wallet(
            amount_total, currency=currency, asset_code=key.asset_code, asset_scale=key.asset_scale
        )
        kept: dict[str, Any] = {name: getattr(self, name) for name in _KEPT}
        for param in ("success_url", "cancel_url"):
            kept[param] = redirect_url(
                kept[param],
                session_id=session_id,
                base_is_http=base_is_http,
                hosts=key.return_hosts,
                param=param,
            )
        return Session(
            id=session_id,
            merchant=key.merchant,
            status=Status.OPEN,
            version=1,
            writer=writer,
            created_at=now,
            updated_at=now,
            expires_at=self.expires_at or now + timedelta(seconds=self.expires_in_seconds),
            amount_total=amount_total,
            currency=currency,
            receive=receive,
            **kept,
            request_id=request_id,
            part=part_of(session_id, key.parts),
            history=(HistoryEntry(at=now, event="created"),),
        )

    def _currency(self, key: ApiKey) -> str:
        currency = self.line_items[0].currency
        for number, item in enumerate(self.line_items):
            if item.currency != currency:
                raise CurrencyMismatch(
                    "All line items must have the same currency.",
                    param=f"line_items[{number}].price_data.currency",
                )
        if currency.upper() != key.asset_code.upper():
            raise CurrencyNotSupported(
                f"Your wallet receives {key.asset_code}, so you cannot charge in "
                f"{currency.upper()}.",
                param="line_items[0].price_data.currency",
            )
        return currency


def _present(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields if value is not None}
