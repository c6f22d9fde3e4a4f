"""Build the document and the public keys of a client that this service runs for a merchant.

At a wallet, a client is whoever signs the requests. A merchant without a key file has no client of
their own, so this service signs for them. Wallets read the client's keys at each signed request.
When a customer has to approve a payment, wallets read the client's document and show the name in
it. The document has all six fields of a wallet address document, because providers refuse an
approval if one of them is missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import BASE62
from checkout.domain.merchant.record import Merchant
from open_payments.models import Jwk

if TYPE_CHECKING:
    from checkout.adapters.dynamo import DynamoMerchants

_PREFIX: Final = "mer_"
_MERCHANT_ID: Final = re.compile(rf"{_PREFIX}{BASE62}")
_CLIENT_ID: Final = re.compile(r"(?:[0-9a-f]{2})+")


def client_url(base_url: str, merchant_id: str) -> str:
    """Return a merchant's client identifier, which is the URL of the client's document.

    The URL ends with the merchant's id in hexadecimal digits, because a wallet may write URLs in
    lower case.
    """
    return f"{base_url}/clients/{merchant_id.removeprefix(_PREFIX).encode().hex()}"


def document(merchants: DynamoMerchants, base_url: str, client_id: str) -> dict[str, Any]:
    """Return the wallet address document of a client; `client_id` is the end of the client's URL.

    Raises ResourceMissing.
    """
    merchant = _of(merchants, client_id)
    return {
        "id": client_url(base_url, merchant.id),
        "publicName": merchant.name,
        "assetCode": merchant.asset_code,
        "assetScale": merchant.asset_scale,
        "authServer": merchant.auth_server,
        "resourceServer": merchant.resource_server,
    }


def jwks(merchants: DynamoMerchants, client_id: str) -> dict[str, Any]:
    """Return a client's public keys; `client_id` is the end of its URL (RFC 7517, RFC 8037).

    If the merchant has changed to a key file, these keys remain readable for payments that began
    before the change. Raises ResourceMissing.
    """
    keys = _of(merchants, client_id).service_keys
    return {"keys": [Jwk(each.key_id, each.x).members() for each in keys]}


def _of(merchants: DynamoMerchants, client_id: str) -> Merchant:
    digits = client_id if _CLIENT_ID.fullmatch(client_id) else ""
    merchant_id = _PREFIX + bytes.fromhex(digits).decode("latin-1")
    found = merchants.get(merchant_id) if _MERCHANT_ID.fullmatch(merchant_id) else None
    if found is None or not found.service_keys:
        raise ResourceMissing("There is no such client.")
    return found
