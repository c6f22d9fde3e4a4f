"""The state machine of a mandate, and the order of its writes, M1 to M3.

A mandate (the refund budget) is a grant of the merchant's wallet that outlives one payment. Its
token is valid for ten minutes. Before a later use, and before the provider deletes it, the token is
rotated, that is, replaced by a new token. A rotation invalidates the old token at once. So if the
answer is lost, the new token is unknown, and the grant is lost for good. Therefore the intent is
written before the call, and only the wallet's answer that the token is gone ends the mandate.

Approve (flows/refund/budget.py). No money can move.

    REQUESTED and the field `wanted` are of release 0.1.0, in which a server could request an
    amount. An approval and an end remove the field.
    A1  Request the grant that the merchant approves in their own wallet: an amount a month, from a
        day that is never after the 28th. APPROVAL_ASKED stores this grant beside a grant in use.
    The merchant returns, and the callback's hash verifies.
    A2  APPROVAL_CLAIMED takes a lease, because the interact_ref can be redeemed only once.
    A3  Continue the grant. After a temporary error of the wallet, as in a sale (transitions.py,
        C7), APPROVAL_KEPT releases the claim, and the approval ends three minutes later at the
        latest. If the wallet refuses, or an error occurs after that time, the grant is canceled,
        and APPROVAL_LOST is written; a grant in use remains in use.
    A4  APPROVED -> active, under the same lease. If another process has taken the lease over, the
        grant is canceled.
        One write replaces the older token, and the older handle that cancels the grant, with the
        new ones. The sum spent in the month continues. Then the older grant is canceled.

Rotate (flows/payment/mandates.py). The sweep rotates the token twice a day. A token that has ended
is also rotated before it is used.

    M1  ROTATION_STARTED takes a lease. From now on the token is not used.
        Rotate with the stored token.
    M2  200: ROTATED stores the new token, if the stored token is still the one that was rotated.
        ROTATED overwrites a "lost" that another process has written meanwhile.
    M3  "No such token", on the same condition: if an earlier rotation had no answer, LOST is
        written. If all earlier ones had an answer, REVOKED is written, because then only the wallet
        can have ended the token. In both cases the merchant is notified, and refunds wait for
        approvals.
        Any other answer decides nothing. When the lease has ended, the next rotation uses the same
        token, and the wallet either accepts the token or answers that the token is gone.

Spend (flows/refund/budget.py).

    R2  SPENT adds the debit to the sum of the period, in the transaction of the refund's intent.
        SPENT is refused if the debit exceeds what is left, or during a rotation. The wallet's own
        sum is not reliable: if a payment from one month fails in the next, the wallet resets the
        sum of the next month.
    R3  GIVEN_BACK subtracts the debit again, if its period is still the current one, in the
        transaction of the verdict that nothing was sent. If a part was sent, the sum keeps the
        whole debit.

End (flows/refund/budget_request.py). ENDED deletes all secrets, then the grant is canceled. A
payment that the wallet accepted before may still be sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from checkout.domain.payment import machine
from checkout.domain.payment.machine import ALWAYS, Change, Condition, Row, row
from checkout.domain.payment.mandate import Mandate, MandateEvent, MandateStatus

When = Condition[Mandate]
IDLE = When("no approval is being redeemed", lambda m, now: not m.lease_live(now))
ASKED = When(
    "an approval waits, and is not being redeemed",
    lambda m, now: (
        m.grant is not None
        and not m.lease_live(now)
        and m.approve_until is not None
        and now < m.approve_until
    ),
)
CLAIMED = When("an approval was claimed", lambda m, now: m.lease_until is not None)
NOT_ROTATING = When("no rotation is open", lambda m, now: m.rotating is None)
FREE = When("no process is rotating", lambda m, now: not m.rotation_live(now))

APPROVAL: Final = ("asked", "grant", "interact_url", "approve_until", "lease_until")
ROTATION: Final = ("rotating", "rotation_until")
_ENDED: Final = (*APPROVAL, *ROTATION, "token", "handle", "rotate_at", "wanted")
_OVER: Final = (*ROTATION, "rotate_at")
_AGAIN: Final = (*ROTATION, "over_at")
_NEW: Final = (*APPROVAL, *_AGAIN, "wanted")

_S, _E = MandateStatus, MandateEvent
# fmt: off
MANDATE_TRANSITIONS: Final[dict[tuple[MandateStatus, MandateEvent], Row]] = {
    # from                event                   to           when, and what goes
    **{(any_, _E.REQUESTED):        Row(any_,     ALWAYS) for any_ in _S},
    **{(any_, _E.APPROVAL_ASKED):   Row(any_,     IDLE, ("lease_until",)) for any_ in _S},
    **{(any_, _E.APPROVAL_CLAIMED): Row(any_,     ASKED, ("interact_url",)) for any_ in _S},
    **{(any_, _E.APPROVAL_KEPT):    Row(any_,     CLAIMED, ("lease_until",)) for any_ in _S},
    **{(any_, _E.APPROVAL_LOST):    Row(any_,     CLAIMED, APPROVAL) for any_ in _S},
    **{(any_, _E.APPROVED):         Row(_S.ACTIVE, CLAIMED, _NEW) for any_ in _S},
    **{(any_, _E.GIVEN_BACK):       Row(any_,     ALWAYS, quiet=True) for any_ in _S},
    (_S.ACTIVE,  _E.SPENT):            Row(_S.ACTIVE,  NOT_ROTATING, quiet=True),
    (_S.ACTIVE,  _E.ROTATION_STARTED): Row(_S.ACTIVE,  FREE, quiet=True),
    (_S.ACTIVE,  _E.NOT_ROTATED):      Row(_S.ACTIVE,  ALWAYS, ("rotation_until",), quiet=True),
    (_S.ACTIVE,  _E.ROTATED):          Row(_S.ACTIVE,  ALWAYS, ROTATION, quiet=True),
    (_S.ACTIVE,  _E.LOST):             Row(_S.LOST,    ALWAYS, _OVER),
    (_S.ACTIVE,  _E.REVOKED):          Row(_S.REVOKED, ALWAYS, _OVER),
    (_S.LOST,    _E.ROTATED):          Row(_S.ACTIVE,  ALWAYS, _AGAIN),
    (_S.REVOKED, _E.ROTATED):          Row(_S.ACTIVE,  ALWAYS, _AGAIN),
    (_S.ACTIVE,  _E.ENDED):            Row(_S.ENDED,   ALWAYS, _ENDED),
    (_S.LOST,    _E.ENDED):            Row(_S.ENDED,   ALWAYS, _ENDED),
    (_S.REVOKED, _E.ENDED):            Row(_S.ENDED,   ALWAYS, _ENDED),
}
# fmt: on


def advance(
    mandate: Mandate,
    event: MandateEvent,
    *,
    now: datetime,
    writer: str,
    note: str | None = None,
    **changes: Any,
) -> Change[Mandate]:
    """Return the change that `event` makes to `mandate` at `now`. Raise IllegalTransition."""
    found = row(MANDATE_TRANSITIONS, mandate, event, now)
    if found.to in (_S.LOST, _S.REVOKED, _S.ENDED) and found.to is not mandate.status:
        changes = {"over_at": now} | changes
    return machine.advance(found, mandate, event, now=now, writer=writer, note=note, **changes)
