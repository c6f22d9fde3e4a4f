"""Real deliveries for tests of verifiers: the headers and bytes that a receiver got from us."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from checkout.flows.webhooks import endpoints
from tests.support.flows import World

# Bytes are not characters, and some readers take `</` and U+2028 for something else.
METADATA: Final = {"order": "42", "note": "Grüße, 茶 ☕ \u2028 </script> 100 %"}


@dataclass(frozen=True, slots=True)
class Delivered:
    """A delivery as received, and the receiver's secret."""

    headers: dict[str, str]
    body: bytes
    secret: str

    @property
    def signature(self) -> str:
        return self.headers["Checkout-Signature"]

    @property
    def changed(self) -> Delivered:
        """One byte of the body is another: the amount's first digit."""
        at = self.body.index(b'"amount_total":') + len(b'"amount_total":')
        assert self.body[at : at + 1] == b"2"
        return replace(self, body=self.body[:at] + b"1" + self.body[at + 1 :])

    def as_json(self) -> dict[str, Any]:
        """For a process in another language; header names as Node's servers give them."""
        return {
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.body.decode(),
            "secret": self.secret,
        }


def delivered(*, age: timedelta = timedelta(0), rolling: bool = False) -> list[Delivered]:
    """A completed session's event as the receiver got it, so long before the present moment: once
    for each secret that is in use, the newest first.
    """
    world = World()
    at = datetime.now(UTC) - age
    world.clock.pass_time((at - world.clock.now()).total_seconds())
    secrets = [world.listen()]
    if rolling:
        rolled = endpoints.roll_secret(
            world.endpoints, world.merchant.id, overlap=timedelta(hours=1)
        )
        assert rolled.secret is not None
        secrets.insert(0, rolled.secret)
    world.pay(world.create(metadata_json=json.dumps(METADATA)))
    world.deliver_hinted()
    [(_, headers, body)] = world.receivers.got
    return [Delivered(headers, body, secret) for secret in secrets]


@dataclass(frozen=True, slots=True)
class Sample:
    """A delivery, and whether verifiers must accept it."""

    name: str
    delivered: Delivered
    accepted: bool


def samples() -> list[Sample]:
    """Return deliveries that every verifier must accept or must refuse."""
    [fresh] = delivered()
    [old] = delivered(age=timedelta(minutes=6))
    newest, before = delivered(rolling=True)
    wrong = replace(fresh, secret=newest.secret)
    unsigned = dict.fromkeys(("Checkout-Signature", "webhook-signature"), "")
    return [
        Sample("a fresh delivery", fresh, accepted=True),
        Sample("the newest secret, while rolling", newest, accepted=True),
        Sample("the secret before, while rolling", before, accepted=True),
        Sample("an old timestamp", old, accepted=False),
        Sample("a changed byte", fresh.changed, accepted=False),
        Sample("another secret", wrong, accepted=False),
        Sample("no signature", replace(fresh, headers=fresh.headers | unsigned), accepted=False),
    ]
