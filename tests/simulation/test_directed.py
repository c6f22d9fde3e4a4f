"""Play out step by step the orders that a random world hardly ever meets.

Each comes with the sabotage that it catches.
"""

from __future__ import annotations

import pytest

from checkout.domain.session.record import Status
from checkout.flows.session import reconcile
from tests.simulation.mutants import Line, Mutant, applied
from tests.support.flows import World, interrupt, on, raising


class Died(BaseException):
    """The process is gone."""


def superseded_approval() -> World:
    """The callback of an approval is loaded again, and frozen until there is a newer approval.

    The first process dies before it continues the grant, so the interact_ref is still good.
    """
    world = World()
    first, old = world.awaiting()
    world.transport.before = on("POST", "/continue/", raising(Died()))
    with pytest.raises(Died):
        world.finish(first, old)
    world.transport.before = lambda request: None
    world.clock.pass_time(46)  # the claim's lease has lapsed

    def meanwhile() -> None:
        reconcile.view(world.services, first.id)
        world.submit(world.session(first.id))
        world.forget()

    interrupt(world, "update_item", meanwhile)
    world.finish(first, old)
    return world


def test_a_callback_of_a_superseded_approval_does_not_touch_the_new_one() -> None:
    world = superseded_approval()
    assert world.transport.count("POST", "/continue/") == 0
    (row,) = [each for each in world.dynamo.rows("test-checkout_sessions") if "status" in each]
    assert row["status"]["S"] == Status.AWAITING_APPROVAL
    assert "phase" not in row


def test_and_that_is_because_the_verified_grant_must_be_the_claimed_one() -> None:
    sabotage = Line(
        "checkout.flows.session.approve:finish",
        "if session.grant != verified.grant:",
        "if False:",
    )
    with applied(Mutant("another approval is claimed", (sabotage,))):
        world = superseded_approval()
    assert world.transport.count("POST", "/continue/") == 1
