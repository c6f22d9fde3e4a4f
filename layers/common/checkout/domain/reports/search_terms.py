"""The texts by which a search finds a session.

    the customer's wallet     the whole address in any spelling, or only the wallet's name
    ids at the wallets        of incoming payments, quotes and outgoing payments, bare or as URLs
    the request's id          of the API request that created the session
    the order number          its beginning, or the beginning of its last part if that has a digit
    the customer's details    the whole e-mail address, the whole name, or the postal code, if the
                              shop has asked for it; keyed hashes are stored
    metadata, item names      once a wallet was given: other whole values of the metadata, and the
                              first words of the items' names
    sums                      the price, what the customer paid, what arrived; not indexed, so the
                              search reads the sessions

Case, blanks around a text, and the form of an address (`$host/path`, `https://host/path`,
`host/path`) make no difference. In a name or a postal code, blanks, signs and accents also make no
difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from typing import Final

from checkout.domain.ground.grammar import LINK_ID
from checkout.domain.ground.money import minor_unit_digits
from checkout.domain.links import METADATA_NAME
from checkout.domain.payment.events import Event
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, metadata_values, order_number

METADATA_FOUND_MAX: Final = 10  # the first values of a session's metadata
WORDS_FOUND_MAX: Final = 4  # the first different words of a session's items
PREFIX_LEAST: Final = 2  # the fewest characters of an order number that find it
# Search texts of this service's own lists. Nobody can type them, because they contain a line end.
REFUNDS: Final = "all\nrefunds"  # all refunds of a merchant
NEEDS_SOMEBODY: Final = "needs\nsomebody"  # the sessions that need a person
PAID: Final = "all\npaid"  # the completed sessions of a merchant
_WORD: Final = re.compile(r"[^\W_]{3,}")
_PART: Final = re.compile(r"[^\W_]+")
_DIGIT: Final = re.compile(r"[0-9]")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_ORDER_MAX: Final = 200  # characters


def order_parts(session: Session) -> list[str]:
    """Return the order number and its last part; the beginning of either finds the session."""
    number = order_number(session)
    whole = same_text(number or "")[:_ORDER_MAX]
    last = next(reversed(_PART.findall(whole)), "")
    parts = dict.fromkeys((whole, last if _DIGIT.search(last) else whole))
    return [part for part in parts if len(part) >= PREFIX_LEAST]


def metadata_texts(session: Session) -> list[str]:
    """Return the whole metadata values that find the session, without repeats."""
    texts = dict.fromkeys(map(same_text, metadata_values(session)[:METADATA_FOUND_MAX]))
    number = order_parts(session)
    return [text for text in texts if text and text not in number]


def texts_of_a_cart(session: Session) -> list[str]:
    """Return the values of the metadata that find a session to which no wallet was given yet.

    These values are the id of the session's payment link, and an order number that is too short to
    be found by its beginning.
    """
    found = {same_text(order_number(session) or ""), same_text(_link(session))}
    return [text for text in metadata_texts(session) if text in found]


def _link(session: Session) -> str:
    value = session.metadata.get(METADATA_NAME)
    return value if isinstance(value, str) and LINK_ID.fullmatch(value) else ""


def words(session: Session) -> list[str]:
    """Return the words of the items' names that find the session, once it can be paid."""
    if not session.happened(Event.PREPARED):
        return []
    names = " ".join(item.name for item in session.line_items).casefold()
    return list(dict.fromkeys(_WORD.findall(names)))[:WORDS_FOUND_MAX]


def wallets(session: Session) -> list[str]:
    """Return the name of the customer's wallet, which finds the session once it can be paid."""
    customer = session.customer if session.happened(Event.PREPARED) else None
    return [last_part(customer.id)] if customer else []


def marks(session: Session) -> list[str]:
    """Return the hashes of the customer's details, which find the session once it can be paid.

    The search hashes the text that it looks for (flows/reports.py).
    """
    if not session.happened(Event.PREPARED):
        return []
    return [each for each in (session.customer_mark, *(session.customer_marks or ())) if each]


def spoken(given: CustomerDetails) -> list[str]:
    """Return the customer's names and postal codes as they are hashed, without repeats."""
    places = [each for each in (given.shipping, given.billing) if each]
    names = [given.name, *(each.name for each in places), *(each.postal_code for each in places)]
    return list(filter(None, dict.fromkeys(spoken_text(each or "") for each in names)))


def spoken_text(text: str) -> str:
    """Return the letters and digits of a name or a postal code, without case and accents."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = (each for each in plain if unicodedata.category(each)[0] in "LMN")
    return _ACCENTS.sub("", "".join(kept))


def sums(session: Session) -> Iterator[Decimal]:
    """Yield the price, what the customer's wallet pays, and what arrived.

    Each sum is yielded exactly, and rounded to the decimals that the pages show.
    """
    amounts = [session.receive]
    if session.quote is not None:
        amounts.append(session.quote.debit)
    if session.received:
        amounts.append(replace(session.receive, value=session.received))
    for amount in amounts:
        exact = Decimal(amount.decimal())
        yield exact
        digits = minor_unit_digits(amount.asset_code, wallet_scale=amount.asset_scale)
        for rounding in (ROUND_UP, ROUND_DOWN):
            yield exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)


def outer_ids(session: Session) -> list[str]:
    """Return the outside ids that find the session once it can be paid, the oldest first.

    These ids are the id of the request that created the session, and the last parts of the URLs of
    payments and quotes at the wallets.
    """
    if not session.happened(Event.PREPARED):
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
    """Return the last part of an address, which is a wallet's name or an id."""
    return same_text(text.partition("?")[0]).rsplit("/", 1)[-1]


def finds(session: Session, text: str) -> bool:
    """Return whether the whole `text` finds the session."""
    typed = same_text(text)
    customer = session.customer
    if customer is not None and typed in (same_text(customer.id), last_part(customer.id)):
        return True
    return typed in (
        *metadata_texts(session),
        *order_parts(session),
        *words(session),
        *marks(session),
    )


def same_text(text: str) -> str:
    """Return `text` in a form for comparison, in which all spellings of an address are equal."""
    plain = text.strip().casefold()
    return plain.removeprefix("$").removeprefix("https://").rstrip("/")
