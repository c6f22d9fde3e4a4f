"""What the dashboard says of states, steps and problems, in plain words."""

from __future__ import annotations

from typing import Final

from checkout.domain.audit import Action
from checkout.domain.session import Status

STATUS: Final[dict[Status, str]] = {
    Status.OPEN: "Open",
    Status.PREPARING: "Preparing",
    Status.AWAITING_APPROVAL: "Awaiting approval",
    Status.PROCESSING: "Confirming",
    Status.COMPLETED: "Paid",
    Status.EXPIRED: "Expired",
    Status.CANCELED: "Canceled",
}

ACTION: Final[dict[Action, str]] = {
    Action.SIGNED_IN: "Signed in",
    Action.SIGNED_OUT: "Signed out",
    Action.SESSION_EXPIRED: "Expired a session",
    Action.SESSION_CANCELED: "Canceled a session",
    Action.EXPORTED: "Exported transactions",
}
