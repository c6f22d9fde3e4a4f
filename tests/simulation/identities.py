"""As whom the shop of a world asks wallets: with a key of its wallet's, or as a client of ours.

In some storms that changes, with sessions in flight: the service's key is followed by another, the
shop goes from its key file to none and back, and is paid into another wallet. Each change waits
until a payment is in a state that was drawn. The host of our client documents cannot be reached for
ten minutes, and copies of them are up to a minute old. Every draw is apart from the others.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from checkout.adapters import dynamo
from checkout.adapters.dynamo.merchants import merchant_from
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.in_flight import Phase
from checkout.domain.refund.record import RefundStatus
from checkout.domain.session.record import Session, Status
from checkout.flows.merchant import client_documents
from checkout.flows.merchant.setup import NewMerchant, SetupRefused, move_wallet, replace_key
from checkout.services import PayServices
from open_payments.transports import Request
from sandbox.wallets.verifier import key_id
from tests.simulation.faults import CALM, Wider
from tests.simulation.providers import MARKET, SHOP

if TYPE_CHECKING:
    from sandbox.wallets.state import Grant
    from tests.simulation.sim_world import SimWorld

Item = dict[str, Any]
ONLY: Final = "the shop's identity changes"  # in every storm: how seeded bugs are hunted
CHANGING: Final = 0.2  # of the storms
MINUTE: Final = 60_000  # milliseconds
HOST_DOWN: Final = 10 * MINUTE
COPY_AGE: Final = MINUTE  # of our documents, at wallets and in caches before them
# Processes keep a merchant for a minute; one may be frozen for two while it is asked for a payment.
KNOWN_WITHIN: Final = 5 * MINUTE
LOOK: Final = 150  # milliseconds between two looks for a payment in the state that was drawn
TRIES: Final = 8
MERCHANT: Final = "mer_1"
WELL_FORMED: Final = ("1" * 22).encode().hex()  # the end of a client's URL

KEYLESS: Final = "to no key file"  # if the shop has none already: the service's next key
KEY_FILE: Final = "to a key file"
WALLET: Final = "to another wallet"
CHANGES: Final = (KEYLESS, KEYLESS, KEY_FILE, WALLET)
# The states of what is in flight: it is counted by its state at each change.
CHANGED: Final = "shop changed, "
STATES: Final = (
    *(str(each) for each in (Status.OPEN, Status.PREPARING, Status.AWAITING_APPROVAL)),
    *(f"{Status.AWAITING_APPROVAL} {each}" for each in Phase),
    str(Status.PROCESSING),
    "over, asked for later",
    *(f"refund {each}" for each in (RefundStatus.NEEDS_APPROVAL, RefundStatus.SENDING)),
)


@dataclass(frozen=True, slots=True)
class Changing:
    """`keyless`: whether the shop begins without a key file. `down_from`: milliseconds.

    Each change is what changes, the state that it waits for, and how long it waits before.
    """

    keyless: bool
    changes: tuple[tuple[str, str, int], ...]
    down_from: int | None


def drawn(seed: int, profile: str, *, always: bool = False) -> Changing | None:
    """Return how the identity changes in the world of this seed, or None if it does not."""
    rng = random.Random(f"{seed} identities")
    if profile != "storm" or not (rng.random() < CHANGING or always):
        return None

    def one() -> tuple[str, str, int]:
        state = STATES[rng.randrange(len(STATES))]
        return CHANGES[rng.randrange(len(CHANGES))], state, rng.randrange(2 * MINUTE)

    changes = tuple(one() for _ in range(1 + rng.randrange(4)))
    keyless = rng.random() < 0.6
    return Changing(keyless, changes, rng.randrange(10 * MINUTE) if rng.random() < 0.4 else None)


class Operator:
    """One who changes the shop's client and wallet, by the flows of the command line."""

    def __init__(self, world: SimWorld, changing: Changing, key: bytes, kid: str) -> None:
        self._world = world
        self._changing = changing
        self._kid = kid
        private = Ed25519PrivateKey.from_private_bytes(key)
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._file = pem.decode()

    def run(self) -> None:
        """Make each change once a payment is in the state that it waits for."""
        world = self._world
        for what, state, after in self._changing.changes:
            world.scheduler.sleep(after)
            self._wait_for(state)
            for _ in range(TRIES):
                if self._change(what):
                    break
                world.scheduler.sleep(5_000)

    def _wait_for(self, state: str) -> None:
        world = self._world
        until = world.scheduler.now + 5 * MINUTE
        while world.scheduler.now < until and world.faults.rates is not CALM:
            if state in in_flight(world):
                return
            world.scheduler.sleep(LOOK)

    def _change(self, what: str) -> bool:
        """Return whether the change was made, or cannot be made here."""
        world = self._world
        before = in_flight(world)
        done = world.request("change identity", lambda services: self._changed(services, what))
        if done.value:
            world.faults.happened(Wider.IDENTITY)
            for state in before:
                world.counts[f"{CHANGED}{state}"] += 1
        return bool(done.value)

    def _changed(self, services: PayServices, what: str) -> bool:
        found = services.merchants.latest(MERCHANT)
        assert found is not None
        wallet, keyless = found.wallet_address, found.client is not None
        if what == WALLET:
            keyless = services.random_bytes(1)[0] < 128
        target = {SHOP: MARKET, MARKET: SHOP}[wallet] if what == WALLET else wallet
        new = NewMerchant("Shop", target)
        if what == KEY_FILE or (what == WALLET and not keyless):
            new = NewMerchant("Shop", target, self._kid, self._file)
        try:
            if what == WALLET:
                move_wallet(services, wallet, new)
            else:
                replace_key(services, new)
        except SetupRefused:
            return False
        return True


def in_flight(world: SimWorld) -> list[str]:
    """Return the state of each payment that is in flight."""
    sessions = [found for each in world.checker.sessions.values() if (found := _state(each))]
    refunds = [
        f"refund {each.status}"
        for each in world.checker.refunds.records.values()
        if not each.terminal
    ]
    return sessions + refunds


def _state(session: Session) -> str | None:
    if session.terminal:
        return "over, asked for later" if session.check_at is not None else None
    return f"{session.status} {session.phase}" if session.phase else str(session.status)


class IdentityChecks:
    """The invariants of a shop's identities, and the copies of its client's documents.

    It knows each identity by the merchant's own rows, as they were written one after the other.
    """

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._known: dict[int, tuple[str, str]] = {}  # number -> client as wallets know it, wallet
        self._over: dict[int, int] = {}  # number -> when it was followed by another
        self._keys: list[tuple[int, frozenset[str]]] = []  # since when our document has these
        self._copies: dict[str, tuple[int, bytes]] = {}
        self._client = _last(client_documents.client_url(world.base_url, MERCHANT))
        self._table = f"{world.prefix}-merchants"
        self.begun = False

    def begin(self) -> None:
        """Watch the rows of the merchant."""
        table = self._world.tables._tables[self._table]
        store = table.store

        def noted(key: Any, item: Item) -> None:
            store(key, item)
            self._written(item)

        table.store = noted  # type: ignore[method-assign]
        self.begun = True
        for item in self._world.tables.rows(self._table):
            self._written(item)

    def _fail(self, check: str, detail: str) -> None:
        self._world.checker.fail(check, detail)

    def _written(self, item: Item) -> None:
        """Check that no identity is lost with which wallets may still have to be asked."""
        if not item["id"]["S"].startswith("mer_"):
            return
        merchant = merchant_from(item)
        client = merchant.client or merchant.wallet_address
        self._known.setdefault(merchant.identity, (client, merchant.wallet_address))
        for number in range(merchant.identity):
            self._over.setdefault(number, self._world.scheduler.now)
        kept = {each.number: each for each in merchant.former}
        for number, known in self._known.items():
            former = kept.get(number, merchant)
            if (former.client or former.wallet_address, former.wallet_address) != known:
                self._fail("identity_is_kept", f"{number} of {merchant.identity}: {known}")
        keys = frozenset(each.key_id for each in merchant.service_keys)
        if keys and (not self._keys or keys != self._keys[-1][1]):
            self._keys.append((self._world.scheduler.now, keys))

    def session(self, before: Session | None, after: Session) -> None:
        """Check that the session names the identity of now, or that of its incoming payment."""
        if not self.begun:
            return
        if after.incoming_payment is None:
            claimed = before is not None and after.submissions != before.submissions
            over = self._over.get(after.identity or 0)
            now = self._world.scheduler.now
            if claimed and over is not None and over < now - KNOWN_WITHIN:
                self._fail("new_payments_are_of_the_shop_of_now", f"identity {after.identity}")
            return
        made = self._world.network.state.incoming.get(_last(after.incoming_payment.id))
        if made is None:
            return
        known = self._known.get(after.identity or 0)
        if (made.client, made.wallet) != known:
            self._fail("payment_has_its_identity", f"{made.client} made it, {known} is stored")

    def sending(self, request: Request) -> None:
        """Check who asks, before a request leaves: it is signed by a key of who may ask."""
        if not self.begun or (kid := key_id(_lower(request))) is None:
            return
        ours = any(kid in keys for _, keys in self._keys)
        now = self._world.scheduler.now
        ends = [since for since, _ in self._keys[1:]] + [now]
        shown = [
            keys for (_, keys), end in zip(self._keys, ends, strict=False) if end >= now - COPY_AGE
        ]
        if ours and not all(kid in keys for keys in shown):
            self._fail("our_key_is_shown", f"{kid} signs, and a wallet may not know it yet")
        grant = self._grant(request)
        if grant is None or grant.client is None:
            return
        own = urlsplit(grant.client).path.startswith("/clients/")
        if own is not ours:
            self._fail("asked_by_its_own_client", f"{request.url}: {kid}, not {grant.client}")
        made = self._made(request.url)
        if made is not None and made.client != grant.client:
            told = f"{request.url}: {grant.client} asks, {made.client} made it"
            self._fail("seen_by_who_made_it", told)

    def _grant(self, request: Request) -> Grant | None:
        state = self._world.network.state
        presented = _lower(request).get("authorization", "").removeprefix("GNAP ")
        token = state.tokens.get(presented)
        if token is not None:
            return state.grants.get(token.grant_id)
        grant = state.grants.get(_last(request.url))
        return grant if grant is not None and grant.continue_token == presented else None

    def _made(self, url: str) -> Any:
        state = self._world.network.state
        path = urlsplit(url).path.removesuffix("/complete")
        if "/incoming-payments/" in path:
            return state.incoming.get(_last(path))
        return state.outgoing.get(_last(path)) if "/outgoing-payments/" in path else None

    def fetch(self, url: str) -> bytes:
        """Return a document of our client as a wallet gets it: it may be a minute old.

        Raises OSError while our host cannot be reached.
        """
        world = self._world
        now, calm = world.scheduler.now, world.faults.rates is CALM
        down = world.changing.down_from if world.changing is not None else None
        if down is not None and not calm and down <= now < down + HOST_DOWN:
            world.faults.happened(Wider.HOST_DOWN)
            raise OSError("our host cannot be reached")
        read, copy = self._copies.get(url, (-COPY_AGE, b""))
        if now >= read + COPY_AGE:
            copy = self._document(urlsplit(url).path.split("/")[2:])
            self._copies[url] = now, copy
        return copy

    def _document(self, path: list[str]) -> bytes:
        if path[0] != self._client:
            raise OSError("there is no such client")
        merchants: Any = _One(dynamo.DynamoMerchants(self._world.tables, self._world.prefix))
        try:
            if path[1:] == ["jwks.json"]:
                return json.dumps(client_documents.jwks(merchants, WELL_FORMED)).encode()
            shown = client_documents.document(merchants, self._world.base_url, WELL_FORMED)
        except ResourceMissing:
            raise OSError("there is no such client") from None
        return json.dumps(shown).encode()


class _One:
    """The merchants of our documents. The only merchant here has a shorter id than others."""

    def __init__(self, merchants: dynamo.DynamoMerchants) -> None:
        self._merchants = merchants

    def get(self, _: str, identity: int = 0) -> Merchant | None:
        return self._merchants.get(MERCHANT, identity)


def _lower(request: Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _last(url: str) -> str:
    return url.rsplit("/", 1)[-1]
