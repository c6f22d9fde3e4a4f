"""A client of Open Payments: wallet addresses, GNAP grants, incoming payments, quotes, payments.

`OpenPayments` is the way in. Importing this package loads neither cryptography nor httpx: each name
is loaded when it is used (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from open_payments import errors as errors
    from open_payments import testing as testing
    from open_payments.client import OpenPayments as OpenPayments
    from open_payments.interaction import Grant as Grant
    from open_payments.interaction import Interval as Interval
    from open_payments.interaction import Limits as Limits
    from open_payments.interaction import PendingGrant as PendingGrant
    from open_payments.models import AccessToken as AccessToken
    from open_payments.models import Amount as Amount
    from open_payments.models import GrantSpent as GrantSpent
    from open_payments.models import IncomingPayment as IncomingPayment
    from open_payments.models import Jwk as Jwk
    from open_payments.models import OutgoingPayment as OutgoingPayment
    from open_payments.models import PublicIncomingPayment as PublicIncomingPayment
    from open_payments.models import Quote as Quote
    from open_payments.models import WalletAddress as WalletAddress
    from open_payments.signatures import SigningKey as SigningKey
    from open_payments.signatures import jwks as jwks
    from open_payments.transports import Request as Request
    from open_payments.transports import Response as Response
    from open_payments.transports import Transport as Transport
    from open_payments.transports.httpx_client import HttpxTransport as HttpxTransport
    from open_payments.transports.public import PublicTransport as PublicTransport

__version__ = "0.1.0"

_MODELS = (
    "AccessToken Amount GrantSpent IncomingPayment Jwk OutgoingPayment PublicIncomingPayment Quote "
    "WalletAddress"
)
_HOMES = {
    "OpenPayments": "client",
    "Grant": "interaction",
    "PendingGrant": "interaction",
    "SigningKey": "signatures",
    "jwks": "signatures",
    "Interval": "interaction",
    "Limits": "interaction",
    **dict.fromkeys(_MODELS.split(), "models"),
    "Request": "transports",
    "Response": "transports",
    "Transport": "transports",
    "HttpxTransport": "transports.httpx_client",
    "PublicTransport": "transports.public",
}

__all__ = ["errors", "testing", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in ("errors", "testing"):
        return importlib.import_module(f"open_payments.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"open_payments.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
