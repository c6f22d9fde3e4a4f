"""Generate identifiers and keys from random bytes that the caller passes in.

All identifiers and keys have at least 128 random bits (decisions.md). `grammar.py` contains
regular expressions for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from checkout.domain.ground.grammar import ID_DIGITS, KEY_DIGITS, LIVE, TEST

RandomBytes = Callable[[int], bytes]  # returns this number of cryptographically strong bytes

SESSION: Final = "cs"  # the kind of a checkout session, with which its id begins
REFUND: Final = "re"
MANDATE: Final = "man"
SUBSCRIBER: Final = "ntc"  # a member who gets notices
WITHDRAWAL: Final = "withdrawal#cs"  # a customer's withdrawal, in a row beside its session
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _base62(random_bytes: RandomBytes, digits: int) -> str:
    """Return `digits` uniform base62 digits.

    The random number is much larger than the range, so its bias is below 2^-64.
    """
    number = int.from_bytes(random_bytes(digits * 6 // 8 + 9), "big")
    out = []
    for _ in range(digits):
        number, digit = divmod(number, 62)
        out.append(_BASE62[digit])
    return "".join(out)


def kind_of(record_id: str) -> str:
    """Return the kind of the record with this id: the text before the first underscore."""
    return record_id.partition("_")[0]


def new_session_id(random_bytes: RandomBytes, *, test: bool = False) -> str:
    """Return the id of a session; on a test stage it contains `test`."""
    return f"{SESSION}_{TEST if test else ''}{_base62(random_bytes, ID_DIGITS)}"


def new_refund_id(random_bytes: RandomBytes) -> str:
    return f"{REFUND}_{_base62(random_bytes, ID_DIGITS)}"


def mandate_id(merchant_id: str) -> str:
    """Return the id of the merchant's one mandate (refund budget), made from the merchant's id."""
    return f"{MANDATE}_{merchant_id.partition('_')[2]}"


def subscriber_id(member_id: str) -> str:
    """Return the id of the record about this member's notices."""
    return f"{SUBSCRIBER}_{member_id.partition('_')[2]}"


def new_merchant_id(random_bytes: RandomBytes) -> str:
    return "mer_" + _base62(random_bytes, ID_DIGITS)


def new_event_id(random_bytes: RandomBytes) -> str:
    return "evt_" + _base62(random_bytes, ID_DIGITS)


def new_link_id(random_bytes: RandomBytes) -> str:
    return "plink_" + _base62(random_bytes, ID_DIGITS)


def new_endpoint_id(random_bytes: RandomBytes) -> str:
    return "we_" + _base62(random_bytes, ID_DIGITS)


def new_key_id(random_bytes: RandomBytes) -> str:
    return "key_" + _base62(random_bytes, ID_DIGITS)


def new_member_id(random_bytes: RandomBytes) -> str:
    return "mbr_" + _base62(random_bytes, ID_DIGITS)


def new_invitation_id(random_bytes: RandomBytes) -> str:
    return "inv_" + _base62(random_bytes, ID_DIGITS)


def new_invitation_token(random_bytes: RandomBytes) -> str:
    """Return the token of an invitation's link. Only its hash is stored."""
    return _base62(random_bytes, KEY_DIGITS)


def new_claim_token(random_bytes: RandomBytes) -> str:
    """Return the token of a link by which a customer claims a refund. Only its hash is stored."""
    return _base62(random_bytes, KEY_DIGITS)


def new_request_id(random_bytes: RandomBytes) -> str:
    return "req_" + _base62(random_bytes, ID_DIGITS)


def new_api_key(random_bytes: RandomBytes, *, test: bool = False) -> str:
    """Return a key whose prefix shows the kind of stage, `sk_live_…` or `sk_test_…`."""
    return f"sk_{TEST if test else LIVE}{_base62(random_bytes, KEY_DIGITS)}"


def new_nonce(random_bytes: RandomBytes) -> str:
    """Return a nonce: for a grant (RFC 9635 section 2.5.2), a payment attempt or a write."""
    return _base62(random_bytes, ID_DIGITS)


def api_key_hash(api_key: str) -> str:
    """Return the SHA-256 in hex under which a key, or the token of a link, is stored.

    Keys and tokens have 256 random bits, so the hash needs no salt.
    """
    return hashlib.sha256(api_key.encode("utf-8", "surrogatepass")).hexdigest()


def session_ref(session_id: str) -> str:
    """Return the text that stands for a session id in log lines; it does not reveal the id.

    To get the text for an id on the command line: `printf %s cs_… | sha256sum | cut -c1-12`.
    """
    return hashlib.sha256(session_id.encode()).hexdigest()[:12]
