"""Search texts: those by which a session is found, and their keys.

    the customer's wallet    whole in any spelling, or only its name, by the key of the name
    ids at the wallets       of incoming payments, quotes and outgoing payments, bare or as URLs
    the request's id         of the API request that created the session
    the order number         from its beginning, or from that of its last part with a digit
    metadata, item names     further values in full; the first words of the items' names

Case, blanks around a text, and the ways to write an address (`$host/path`, `https://host/path`,
`host/path`) make no difference.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

from checkout.domain.session import Session

METADATA_FOUND_MAX: Final = 10  # values of a session's metadata, in their order
WORDS_FOUND_MAX: Final = 4  # different words of a session's items, in their order
PREFIX_LEAST: Final = 2  # characters of an order number that find it
_PREPARED: Final = "prepared"  # of transitions.Event
_WORD: Final = re.compile(r"[^\W_]{3,}")
_LAST_PART: Final = re.compile(r"[^\W_]*[0-9][^\W_]*(?=[\W_]*$)")
_ORDER_MAX: Final = 200  # characters


def search_key(merchant: str, text: str) -> str:
    """Return the index's key for `text`. It is a hash, because a wallet address is private."""
    return hashlib.sha256(f"search\n{merchant}\n{same_text(text)}".encode()).hexdigest()[:32]


def prefix_key(merchant: str, text: str) -> str:
    """Return the key under which order numbers lie that begin as `text` does."""
    return search_key(merchant, "order\n" + same_text(text)[:PREFIX_LEAST])


def order_number(session: Session) -> str | None:
    """Return the merchant's reference, or else the first value of the metadata."""
    if session.client_reference_id:
        return session.client_reference_id
    first = next(iter(session.metadata.values()), None)
    return str(first) if findable(first) else None


def order_parts(session: Session) -> list[str]:
    """Return the texts whose beginnings find the order number: all of it, and its last part."""
    number = order_number(session)
    whole = same_text(number or "")[:_ORDER_MAX]
    last = _LAST_PART.search(whole)
    parts = dict.fromkeys((whole, last[0] if last else whole))
    return [part for part in parts if len(part) >= PREFIX_LEAST]


def metadata_texts(session: Session) -> list[str]:
    """Return the values of the metadata that find the session in full, each once."""
    values = [value for value in session.metadata.values() if findable(value)]
    texts = dict.fromkeys(same_text(str(value)) for value in values[:METADATA_FOUND_MAX])
    return [text for text in texts if text not in order_parts(session)]


def words(session: Session) -> list[str]:
    """Return the words of the items' names that find the session, once it can be paid."""
    if not session.happened(_PREPARED):
        return []
    names = " ".join(item.name for item in session.line_items).casefold()
    return list(dict.fromkeys(_WORD.findall(names)))[:WORDS_FOUND_MAX]


def wallets(session: Session) -> list[str]:
    """Return the name of the customer's wallet, which finds the session once it can be paid."""
    customer = session.customer if session.happened(_PREPARED) else None
    return [last_part(customer.id)] if customer else []


def outer_ids(session: Session) -> list[str]:
    """Return the ids elsewhere that find the session, once it can be paid: the oldest first.

    They are the id of the request that created it, and at the wallets the last parts of the
    addresses of payments and quotes.
    """
    if not session.happened(_PREPARED):
        return []
    return list(dict.fromkeys(last_part(each) for each in _outer(session) if each))


def _outer(session: Session) -> Iterator[str | None]:
    yield session.request_id
    for attempt in session.payment_attempts:
        yield attempt.incoming_payment
        yield attempt.quote.id if attempt.quote else None
        yield attempt.outgoing_payment
    yield session.incoming_payment.id if session.incoming_payment else None
    yield session.quote.id if session.quote else None
    yield session.outgoing_payment


def last_part(text: str) -> str:
    """Return the last part of an address: a wallet's name, or an id."""
    return same_text(text.partition("?")[0]).rsplit("/", 1)[-1]


def finds(session: Session, text: str) -> bool:
    """Return whether `text` finds the session in full."""
    typed = same_text(text)
    customer = session.customer
    if customer is not None and typed in (same_text(customer.id), last_part(customer.id)):
        return True
    return typed in (*metadata_texts(session), *order_parts(session), *words(session))


def findable(value: Any) -> bool:
    if isinstance(value, str):
        return bool(same_text(value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_text(text: str) -> str:
    """Return `text` as it is compared: spellings of the same wallet address are equal."""
    plain = text.strip().casefold()
    return plain.removeprefix("$").removeprefix("https://").rstrip("/")
