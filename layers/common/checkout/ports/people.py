"""Declare the stores of a merchant's people and of challenges, and the check of passkeys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from checkout.domain.merchant import Merchant
from checkout.domain.people import Invitation, Member, Passkey
from checkout.ports.sessions import Reservation


class People(Protocol):
    """Store members and invitations. A method that returns False has written nothing."""

    def member(self, member_id: str) -> Member | None:
        """Read a member, strongly consistent."""
        ...

    def invitation(self, token_hash: str) -> Invitation | None:
        """Read an invitation by the hash of its token, strongly consistent."""
        ...

    def members_of(self, merchant_id: str) -> tuple[Member, ...]:
        """Return all members of a merchant, unordered, by an index that lags a little."""
        ...

    def invitations_of(self, merchant_id: str) -> tuple[Invitation, ...]:
        """Return the merchant's invitations, unordered, by an index that lags a little."""
        ...

    def invite(self, invitation: Invitation, reservation: Reservation | None = None) -> None:
        """Write a new invitation, and the reservation in the same transaction. Raises KeyHeld."""
        ...

    def withdraw(self, ended: Invitation) -> bool:
        """Write the end of the invitation, if it had none before."""
        ...

    def join(self, member: Member, accepted: Invitation, inviter: Member | None = None) -> bool:
        """Write the member and the end of their invitation, if it was still open at that time.

        The member who invited, if one did, must be an active owner.
        """
        ...

    def found(self, merchant: Merchant, member: Member, accepted: Invitation | None = None) -> bool:
        """Write a new merchant with its first member, and the end of the invitation, if any.

        The invitation must have been open at that time. The wallet is not taken for the merchant.
        """
        ...

    def replace(self, member: Member, kept: Member | None = None) -> bool:
        """Write the member if the stored version is one less, and `kept` is an active owner."""
        ...


class Challenges(Protocol):
    """Store the challenges that passkeys sign: one for each browser and purpose at a time."""

    def put(self, place: str, challenge: bytes, until: datetime) -> None: ...

    def look(self, place: str, now: datetime) -> bytes | None:
        """Return what `take` would return, and leave it there."""
        ...

    def take(self, place: str, now: datetime) -> bytes | None:
        """Return the challenge of this browser and purpose once, if it has not expired."""
        ...


class PasskeyRefused(Exception):
    """Report that a browser's answer is not valid for the challenge. The message is for logs."""


@dataclass(frozen=True, slots=True)
class PresentedPasskey:
    """A passkey that a browser presents: its id, and the id of its member, both unverified."""

    passkey: str
    member: str


class Passkeys(Protocol):
    """Make the options of WebAuthn, and verify what browsers return, as JSON text.

    Only for this service's origin, and only if the device has verified the person.
    """

    def creation_options(self, member_id: str, name: str, challenge: bytes) -> str: ...

    def request_options(self, challenge: bytes) -> str: ...

    def created(self, answer: str, challenge: bytes) -> Passkey:
        """Return the new passkey. Raises PasskeyRefused."""
        ...

    def presented(self, answer: str) -> PresentedPasskey:
        """Return the member that the passkey claims to be. Raises PasskeyRefused."""
        ...

    def used(self, answer: str, challenge: bytes, passkey: Passkey) -> Passkey:
        """Return the passkey with its new counter. Raises PasskeyRefused."""
        ...
