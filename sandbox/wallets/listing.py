"""Shared parts of the resource server: the access that a request has proved, and paged lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from open_payments.transports import Response
from sandbox.wallets import answers
from sandbox.wallets.answers import ok, resource
from sandbox.wallets.call import Call
from sandbox.wallets.state import Grant

MOST = 2**63 - 1  # the limit of Rafiki's database; above it Rafiki answers 500
_DEFAULT_LENGTH = 20


class Owned(Protocol):
    """A payment or quote that a client has created in a wallet."""

    @property
    def id(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def wallet(self) -> str: ...
    @property
    def client(self) -> str | None: ...


Item = TypeVar("Item", bound=Owned)


@dataclass(frozen=True, slots=True)
class Access:
    """A grant that allows `action` on the resources of `wallet`."""

    grant: Grant
    wallet: str
    action: str

    def sees(self, item: Owned) -> bool:
        """Return whether the grant covers this item.

        `read` and `list` cover only the client's own items. `read-all` and `list-all` cover all
        items, and so does every grant of a client that is identified only by its key.
        """
        everything = any(f"{self.action}-all" in each["actions"] for each in self.grant.access)
        return everything or self.grant.client is None or item.client == self.grant.client


@dataclass(frozen=True, slots=True)
class Page:
    """The part of a list: `first` items after the cursor or `last` before it.

    The cursor is an item's id.
    """

    first: int | None
    last: int | None
    cursor: str | None

    @classmethod
    def of(cls, call: Call) -> Page:
        if "wallet-address" not in call.query:
            raise invalid("query must have required property 'wallet-address'")
        return cls(
            _length(call.query.get("first"), "first"),
            _length(call.query.get("last"), "last"),
            call.query.get("cursor"),
        )


def one_page(
    items: Sequence[Item], page: Page, shown: Callable[[Item], dict[str, Any]]
) -> Response:
    """Return a page of `items`, newest first. Raises Refusal for an unknown cursor."""
    start, end = 0, len(items)
    if page.cursor is not None:
        at = next((index for index, item in enumerate(items) if item.id == page.cursor), None)
        if at is None:
            raise resource(404, "unknown cursor")
        start, end = (at + 1, end) if page.last is None else (start, at)
    if page.last is None:
        end = min(end, start + (page.first or _DEFAULT_LENGTH))
    else:
        start = max(start, end - page.last)
    cut = items[start:end]
    pagination: dict[str, Any] = {"hasNextPage": end < len(items), "hasPreviousPage": start > 0}
    if cut:
        pagination |= {"startCursor": cut[0].id, "endCursor": cut[-1].id}
    return ok({"pagination": pagination, "result": [shown(item) for item in cut]})


def invalid(found: str) -> answers.Refusal:
    return resource(400, f"Received error validating OpenAPI request: {found}")


def _length(given: str | None, name: str) -> int | None:
    if given is None:
        return None
    try:
        length = int(given)
    except ValueError:
        raise invalid(f"query.{name} must be integer") from None
    if length < 1:
        raise invalid(f"query.{name} must be >= 1")
    if length > 100:
        raise invalid(f"query.{name} must be <= 100")
    return length
