"""Merchants and API keys as DynamoDB items: their fields and nothing more."""

from __future__ import annotations

from typing import Final

from checkout.adapters.dynamo.codec import Codec
from checkout.domain.merchant import ApiKey, Merchant

_MERCHANT: Final = Codec(Merchant)
_KEY: Final = Codec(ApiKey)

merchant_item: Final = _MERCHANT.encode
merchant_from: Final = _MERCHANT.decode
key_item: Final = _KEY.encode
key_from: Final = _KEY.decode
