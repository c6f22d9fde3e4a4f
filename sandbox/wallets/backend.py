"""State and money of the wallet providers: accounts, grants, payments and their settlement.

The servers of all providers share one `Backend`. Clock, randomness and sleep are arguments, and
this module uses no threads and no sockets. If an effect of a payment is due later (money that
arrives late, a failure after acceptance), the first call of `advance` after this time applies it.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from sandbox.wallets import allowance
from sandbox.wallets.behaviours import BEHAVIOURS, Behaviour
from sandbox.wallets.clients import Clients, no_fetch
from sandbox.wallets.money import RATES
from sandbox.wallets.provider import Provider
from sandbox.wallets.state import (
    Account,
    IncomingPayment,
    OutgoingPayment,
    Packet,
    State,
    decode,
    encode,
)

FUNDING = timedelta(milliseconds=300)  # until a payment without enough money fails
JUST_BEFORE = timedelta(milliseconds=1)
KEYS_MAX = 5  # of an account
NO_FUNDS = "Account does not have enough balance."


class Backend:
    """Accounts and payments of wallet providers that can pay each other.

    `now` returns aware datetimes and `random_bytes(n)` n bytes. `sleep(seconds)` is called for
    wallets that answer slowly. `fetch(url)` returns the document of a client whose wallet address
    is outside this network, or raises OSError.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        random_bytes: Callable[[int], bytes],
        *,
        providers: Iterable[Provider] = (),
        pages_origin: str = "http://localhost:4100",
        rates: Mapping[str, Fraction] = RATES,
        fetch: Callable[[str], bytes] = no_fetch,
        sleep: Callable[[float], None] = lambda _: None,
        behaviours: Mapping[str, Behaviour] = BEHAVIOURS,
    ) -> None:
        self.behaviours = behaviours
        self.now = now
        self.random_bytes = random_bytes
        self.providers = {provider.name: provider for provider in providers}
        self.pages_origin = pages_origin
        self.rates = rates
        self.sleep = sleep
        self.state = State()
        self.clients = Clients(self.account, fetch)

    # --- accounts ---

    def add_account(self, account: Account) -> None:
        """Add `account`, unless its wallet address exists already.

        Raises ValueError if no provider serves the address.
        """
        if self.provider_of(account.id) is None:
            raise ValueError(f"no provider serves {account.id}")
        self.state.accounts.setdefault(account.id, account)

    def delete_account(self, wallet_address: str) -> None:
        """Delete an account with its payments and quotes."""
        del self.state.accounts[wallet_address]
        kinds: list[dict[str, Any]] = [self.state.incoming, self.state.quotes, self.state.outgoing]
        for records in kinds:
            for record in [each for each in records.values() if each.wallet == wallet_address]:
                del records[record.id]

    def idle_accounts(self) -> list[Account]:
        """Return the accounts that people have opened, in the order in which to delete them.

        Accounts without a payment come first, then the other accounts, by the time of their last
        payment. Accounts with money on its way are left out.
        """
        moving = [each for each in self.state.outgoing.values() if each.settles_at is not None]
        receivers = {each.receiver.rsplit("/", 1)[-1] for each in moving}
        receivers |= {each.receiver for each in self.state.packets}
        busy = {each.wallet for each in moving}
        busy |= {
            self.state.incoming[each].wallet for each in receivers & self.state.incoming.keys()
        }
        found = [
            (bool(each.entries), each.entries[-1].at if each.entries else each.opened_at, each)
            for each in self.state.accounts.values()
            if each.opened_at is not None and each.id not in busy
        ]
        return [account for *_, account in sorted(found, key=lambda each: each[:2])]

    def account(self, wallet_address: str) -> Account | None:
        return self.state.accounts.get(wallet_address)

    def provider_of(self, url: str) -> Provider | None:
        for provider in self.providers.values():
            if url.startswith(f"{provider.origin}/"):
                return provider
        return None

    def behaviour(self, wallet_address: str) -> Behaviour:
        account = self.account(wallet_address)
        return self.behaviours[account.behaviour if account else "normal"]

    def way(self, payment: OutgoingPayment) -> Behaviour:
        """Return the behavior of a payment.

        This is the behavior of the sender's wallet, unless the receiver's wallet defines another
        one (`paid_like`).
        """
        receiver = self.state.incoming.get(payment.receiver.rsplit("/", 1)[-1])
        to = self.behaviour(receiver.wallet if receiver else "")
        if to.paid_like is None or (to.paid_like_once and not self._is_first(payment)):
            return self.behaviour(payment.wallet)
        return self.behaviours[to.paid_like]

    def _is_first(self, payment: OutgoingPayment) -> bool:
        """Return whether this is the first payment to its receiver's wallet."""
        wallet = self.state.incoming[payment.receiver.rsplit("/", 1)[-1]].wallet
        return not any(
            other.id != payment.id
            and other.created_at <= payment.created_at
            and (found := self.state.incoming.get(other.receiver.rsplit("/", 1)[-1])) is not None
            and found.wallet == wallet
            for other in self.state.outgoing.values()
        )

    def is_gone(self, wallet_address: str) -> bool:
        """Return whether the wallet is gone: with the behavior `gone`, from its first payment."""
        return self.behaviour(wallet_address).gone and any(
            payment.wallet == wallet_address for payment in self.state.outgoing.values()
        )

    def register_key(self, wallet_address_id: str, jwk: Mapping[str, str]) -> None:
        """Add an Ed25519 public key to a wallet's jwks.json, as a wallet's developer page does.

        A key with the same `kid` is replaced. Above KEYS_MAX keys, the oldest is removed. Raises
        KeyError for an unknown wallet address.
        """
        account = self.state.accounts[wallet_address_id]
        account.keys = [
            *(key for key in account.keys if key["kid"] != jwk["kid"]),
            dict(jwk),
        ][-KEYS_MAX:]

    def linger(self, wallet_address: str) -> None:
        """Sleep for the response time of this wallet."""
        seconds = self.behaviour(wallet_address).answers_after
        if seconds:
            self.sleep(seconds)

    def time_at(self, provider: str) -> datetime:
        """Return the time on the clock of the provider of this name."""
        return self.now() + self.providers[provider].skew

    def new_id(self) -> str:
        return str(uuid.UUID(bytes=self.random_bytes(16), version=4))

    # --- money ---

    def advance(self) -> None:
        """Apply every effect that is due, in the order of their times."""
        while due := self._due(self.now()):
            first = min(due, key=lambda each: each[0])
            if isinstance(first[1], Packet):
                self._arrive(first[1])
            else:
                self._settle(first[1])

    def _due(self, now: datetime) -> list[tuple[datetime, OutgoingPayment | Packet]]:
        due: list[tuple[datetime, OutgoingPayment | Packet]] = [
            (payment.settles_at, payment)
            for payment in self.state.outgoing.values()
            if payment.settles_at is not None and payment.settles_at <= now
        ]
        due += [
            (packet.arrives_at, packet) for packet in self.state.packets if packet.arrives_at <= now
        ]
        return due

    def incoming_payment(self, url: str) -> IncomingPayment | None:
        """Return the incoming payment at `url`, or None if it is unknown or has vanished."""
        payment = self.state.incoming.get(url.rsplit("/", 1)[-1])
        if payment is None or url != self.incoming_payment_url(payment):
            return None
        return None if self.has_vanished(payment) else payment

    def has_vanished(self, payment: IncomingPayment) -> bool:
        unpaid = not payment.completed and payment.received.value == 0
        return unpaid and payment.expires_at <= self.time_at(payment.provider)

    def is_payable(self, payment: IncomingPayment, at: datetime | None = None) -> bool:
        """Return whether the provider accepts money for `payment`, now or at the given time."""
        return payment.is_payable((at or self.now()) + self.providers[payment.provider].skew)

    def is_reached(self, payment: IncomingPayment, at: datetime | None = None) -> bool:
        """Return whether a payer's provider finds that `payment` accepts money.

        If the receiver's provider does not let the payment be read, the payment counts as closed.
        """
        return self.is_payable(payment, at) and self.providers[payment.provider].rules.readable

    def incoming_payment_url(self, payment: IncomingPayment) -> str:
        return f"{self.providers[payment.provider].resource_server}/incoming-payments/{payment.id}"

    def start(self, payment: OutgoingPayment) -> None:
        """Debit the sender and send the money, immediately or after the behavior's delay."""
        self.state.outgoing[payment.id] = payment
        account = self.state.accounts[payment.wallet]
        behaviour = self.way(payment)
        delay = behaviour.delivers_after
        receiver = self.incoming_payment(payment.receiver)
        if receiver is not None:
            receiver.stays_open |= behaviour.keeps_open
            if behaviour.sends_when_closed:
                delay = receiver.expires_at - self.time_at(receiver.provider) - JUST_BEFORE
        payment.funded = account.balance >= payment.debit.value
        if not payment.funded:
            delay = FUNDING
        else:
            account.book(self.now(), f"Payment {payment.id[:8]}", -payment.debit.value)
        payment.settles_at = self.now() + delay
        if not delay:
            self._settle(payment)

    def _settle(self, payment: OutgoingPayment) -> None:
        assert payment.settles_at is not None
        at, payment.settles_at = payment.settles_at, None
        account = self.state.accounts[payment.wallet]
        behaviour = self.way(payment)
        if not payment.funded:
            self._fail(payment)
            payment.metadata = {**payment.metadata, "cancellationReason": NO_FUNDS}
            return
        late = behaviour.ends_with_quote and self._is_late(payment, at)
        if (behaviour.fails or late) and not payment.parts_sent:
            self._fail(payment)
            account.book(at, f"Returned {payment.id[:8]}", payment.debit.value)
            return
        # The receiver may have been deleted since this effect was planned.
        receiver = self.state.incoming.get(payment.receiver.rsplit("/", 1)[-1])
        away = behaviour.receiver_away_after == payment.parts_sent
        if receiver is None or away or not self.is_reached(receiver, at):
            # Rafiki reports such a payment as completed, with nothing or only a part sent. The
            # whole amount still counts against the grant.
            sent = math.ceil(payment.sent / behaviour.admits)
            account.book(at, f"Returned {payment.id[:8]}", payment.debit.value - sent)
            return
        if not behaviour.delivered:
            return
        self._send_part(payment, receiver, behaviour, at)
        if payment.parts_sent < behaviour.parts:
            payment.settles_at = at + behaviour.parts_apart
            return
        if behaviour.claims_failure or behaviour.delivered < 1:
            self._fail(payment)
        if behaviour.delivered < 1:
            unsent = payment.debit.value - payment.fee - payment.sent
            account.book(at, f"Returned {payment.id[:8]}", unsent)

    def _is_late(self, payment: OutgoingPayment, at: datetime) -> bool:
        quote = self.state.quotes[payment.quote_id]
        return at + self.providers[payment.provider].skew >= quote.expires_at

    def _fail(self, payment: OutgoingPayment) -> None:
        if not payment.failed and payment.grant_id:
            allowance.give_back(self.state.grants[payment.grant_id], payment)
        payment.failed = True

    def _send_part(
        self,
        payment: OutgoingPayment,
        receiver: IncomingPayment,
        behaviour: Behaviour,
        at: datetime,
    ) -> None:
        share = behaviour.delivered / behaviour.parts
        before, payment.parts_sent = payment.parts_sent, payment.parts_sent + 1
        admitted = share * payment.parts_sent * behaviour.admits
        payment.sent = math.floor((payment.debit.value - payment.fee) * admitted)
        whole = max(0, payment.receive.value - behaviour.short_by)
        value = math.floor(whole * share * payment.parts_sent) - math.floor(whole * share * before)
        if behaviour.delivered == 1 and payment.parts_sent == behaviour.parts:
            value += behaviour.over_by  # money without a debit arrives only with the whole amount
        packet = Packet(at + behaviour.in_flight, receiver.id, payment.id, value)
        if behaviour.in_flight:
            self.state.packets.append(packet)
        else:
            self._credit(receiver, value, at)

    def close(self, receiver: IncomingPayment) -> None:
        """Complete an incoming payment. Wallets with `sends_when_closed` send to it just before."""
        url = self.incoming_payment_url(receiver)
        for payment in self.state.outgoing.values():
            behaviour = self.behaviour(payment.wallet)
            waits = payment.settles_at is not None and payment.funded
            if waits and payment.receiver == url and behaviour.sends_when_closed:
                payment.settles_at = self.now()
                self._settle(payment)
        receiver.completed = True

    def pay_from_outside(self, url: str, value: int) -> bool:
        """Credit the incoming payment at `url`, as if a payer outside of this network had paid.

        Return False, and change nothing, if the incoming payment accepts no money.
        """
        receiver = self.incoming_payment(url)
        if receiver is None or not self.is_payable(receiver):
            return False
        receiver.from_outside += value
        self._credit(receiver, value, self.now())
        return True

    def _arrive(self, packet: Packet) -> None:
        self.state.packets.remove(packet)
        self._credit(self.state.incoming[packet.receiver], packet.value, packet.arrives_at)

    def _credit(self, payment: IncomingPayment, value: int, at: datetime) -> None:
        payment.received = payment.received.with_value(payment.received.value + value)
        payment.completed |= payment.remaining() == 0
        self.state.accounts[payment.wallet].book(at, f"Received for {payment.id[:8]}", value)

    # --- between runs ---

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-able data."""
        return {"origins": self.origins(), "state": encode(self.state)}

    def load(self, data: Mapping[str, Any]) -> None:
        """Replace the state by a `dump`. Accounts that the dump does not contain are kept.

        Raises ValueError if the dump is of a network with other origins or another version of the
        sandbox.
        """
        if data.get("origins") != self.origins():
            raise ValueError("the saved wallets have other addresses")
        accounts = self.state.accounts
        self.state = decode(data["state"])
        self.state.accounts = accounts | self.state.accounts

    def origins(self) -> list[str]:
        """Return the origins of all servers, beginning with the origin of the pages."""
        own = [[each.origin, each.auth_origin] for each in self.providers.values()]
        return [self.pages_origin, *(origin for pair in own for origin in pair)]
