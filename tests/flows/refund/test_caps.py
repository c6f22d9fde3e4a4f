"""A leaked API key moves nothing without the scope, and with it at most its cap.

The caps are written out here, and the sums that were moved come from the wallets' books.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest

from checkout.domain.ground.errors import CheckoutError, MemberUnexpectedState, PermissionMissing
from checkout.domain.merchant.people import Actor, Member, RefundCap, Right, Role, Scope, may
from checkout.domain.merchant.record import ApiKey, Suspension
from checkout.domain.payment.mandate import Margin
from checkout.domain.refund.record import RefundProblem, RefundStatus
from checkout.flows.merchant import api_keys, suspension
from checkout.flows.people import people
from checkout.flows.refund import request
from checkout.flows.refund.request import NewRefund
from tests.support.basics import at_once, between
from tests.support.flows import World
from tests.support.refund_books import ALICE, BOB, again, allow, balance, end_budget, fund, leaked
from tests.support.samples import a_member, an_invitation

ONCE: Final = 20_00
A_DAY: Final = 50_00


@pytest.fixture
def world() -> World:
    found = World()
    fund(found)
    allow(found, 1000_00)
    return found


def sold(world: World, amount: int = 30_00) -> str:
    return world.pay(world.create(amount), BOB).id


def try_all(world: World, key: Actor, sessions: list[str], amount: int) -> int:
    """Ask for a refund of each session; return how many were taken."""
    taken = 0
    for each in sessions:
        try:
            request.create(world.services, key, NewRefund(session=each, amount=amount))
        except PermissionMissing:
            continue
        taken += 1
    return taken


def moved(world: World, before: int) -> int:
    """Let the schedule run, and return what the customer's wallet got since `before`."""
    for _ in range(30):
        world.sweep()
        world.clock.pass_time(5)
    return balance(world, BOB) - before


def test_a_leaked_key_moves_at_most_its_cap_of_a_day(world: World) -> None:
    sessions = [sold(world) for _ in range(6)]
    before = balance(world, BOB)
    assert try_all(world, leaked(world, once=ONCE, day=A_DAY), sessions, 20_00) == 2
    assert moved(world, before) == 40_00
    assert try_all(world, leaked(world, once=ONCE, day=A_DAY), sessions, 10_00) == 1
    assert moved(world, before) == A_DAY


def test_a_leaked_key_moves_at_most_its_cap_at_once(world: World) -> None:
    session, before = sold(world), balance(world, BOB)
    key = leaked(world, once=ONCE)
    with pytest.raises(PermissionMissing, match=r"limit for a single refund is 20\.00 USD"):
        request.create(world.services, key, NewRefund(session=session, amount=ONCE + 1))
    with pytest.raises(PermissionMissing):
        request.create(world.services, key, NewRefund(session=session))  # all that is left: 30.00
    assert world.session(session).refunded == 0
    assert try_all(world, key, [session], ONCE) == 1
    assert moved(world, before) == ONCE


def test_one_refund_of_more_than_the_day_is_refused_at_once(world: World) -> None:
    session = sold(world, 60_00)
    with pytest.raises(PermissionMissing, match=r"is 50\.00 USD a day .* 50\.00 USD are left"):
        request.create(world.services, leaked(world, day=A_DAY), NewRefund(session=session))
    assert world.session(session).refunded == 0


def test_a_refusal_says_what_is_left_of_the_day(world: World) -> None:
    first, second = sold(world), sold(world)
    key = leaked(world, day=A_DAY)
    request.create(world.services, key, NewRefund(session=first, amount=30_00))
    with pytest.raises(PermissionMissing, match=r"of which 20\.00 USD are left"):
        request.create(world.services, key, NewRefund(session=second, amount=30_00))


def test_what_the_budget_pays_beyond_the_amount_counts_in_the_day(world: World) -> None:
    """Two fees of a hundredth and a conversion make a price of 30.63 for a refund of 30.00."""
    allow(world, 1000_00, margin=Margin(percent=5, units=0))
    session = world.pay(world.create(30_00), ALICE).id
    key = leaked(world, day=30_62)
    refund = request.create(world.services, key, NewRefund(session=session))
    moved(world, 0)
    assert again(world, refund).problem is RefundProblem.TOO_DEAR
    request.cancel(world.services, world.key(), refund.id)
    world.clock.pass_time(24 * 3600)
    key = leaked(world, day=30_63)
    refund = request.create(world.services, key, NewRefund(session=session))
    moved(world, 0)
    assert again(world, refund).status is RefundStatus.SUCCEEDED
    with pytest.raises(PermissionMissing, match=r"of which 0\.00 USD are left"):
        request.create(world.services, key, NewRefund(session=sold(world), amount=1))


def test_the_next_day_has_a_cap_of_its_own(world: World) -> None:
    sessions = [sold(world) for _ in range(4)]
    key = leaked(world, day=A_DAY)
    assert try_all(world, key, sessions, 25_00) == 2
    world.clock.pass_time(24 * 3600)
    assert try_all(world, key, sessions[2:], 25_00) == 2


def test_a_cap_holds_23_hours_later(world: World) -> None:
    """The count of a day is stored until the day is over."""
    sessions = [sold(world) for _ in range(4)]
    world.clock.pass_time(12.25 * 3600)
    key = leaked(world, day=A_DAY)
    assert try_all(world, key, sessions, 25_00) == 2
    world.clock.pass_time(23 * 3600)
    assert try_all(world, key, sessions[2:], 25_00) == 0


def test_each_key_has_a_count_of_its_own(world: World) -> None:
    sessions = [sold(world) for _ in range(4)]
    key = leaked(world, day=A_DAY)
    assert try_all(world, key, sessions, 25_00) == 2
    other = replace(key, id="key_other")
    assert try_all(world, other, sessions[2:], 25_00) == 2


def rolled(world: World, old: ApiKey) -> ApiKey:
    """The key that the merchant's owner makes of the old one, which works on for a day."""
    owner = a_member(merchant=world.merchant.id)
    return api_keys.roll(world.endpoints, owner, old.id, overlap=timedelta(days=1)).key


def revoked(world: World, old: ApiKey) -> ApiKey:
    """The key that the operator's command makes in place of the merchant's last one."""
    for each in world.endpoints.api_keys.of(world.merchant.id):
        if each.id != old.id and each.current:
            suspension.revoke(world.endpoints, each)
    made = suspension.revoke(world.endpoints, old)
    assert made is not None
    return made.key


@pytest.mark.parametrize("replaced", [rolled, revoked])
def test_a_key_that_replaces_another_has_its_caps_and_goes_on_with_its_count(
    world: World, replaced: Callable[[World, ApiKey], ApiKey]
) -> None:
    sessions = [sold(world) for _ in range(4)]
    key = api_keys.create(
        world.endpoints,
        a_member(merchant=world.merchant.id),
        name="Shop",
        scopes=tuple(Scope),
        refund_cap=RefundCap(once=ONCE, day=A_DAY),
    ).key
    assert try_all(world, key, sessions, 20_00) == 2
    second = replaced(world, key)
    assert try_all(world, second, sessions[2:], 15_00) == 0
    third = replaced(world, second)
    assert try_all(world, third, sessions[2:], 10_00) == 1
    assert try_all(world, third, sessions[2:], 1) == 0
    assert [each.signs_in for each in (second, third)] == [False, False]
    world.clock.pass_time(24 * 3600)
    assert try_all(world, third, sessions[3:], ONCE + 1) == 0
    assert try_all(world, third, sessions[3:], ONCE) == 1


def test_what_is_canceled_stays_counted(world: World) -> None:
    end_budget(world)
    session, key = sold(world), leaked(world, day=A_DAY)
    for _ in range(2):
        made = request.create(world.services, key, NewRefund(session=session, amount=25_00))
        request.cancel(world.services, key, made.id)
    with pytest.raises(PermissionMissing):
        request.create(world.services, key, NewRefund(session=session, amount=1))


def test_a_refused_refund_is_not_counted(world: World) -> None:
    """Neither one of nothing, nor one that lost a race and was decided again."""
    session, key = sold(world), leaked(world, day=A_DAY)
    with pytest.raises(CheckoutError):
        request.create(world.services, key, NewRefund(session=session, amount=40_00))
    uncapped = leaked(world)

    def overtaken() -> None:
        request.create(world.services, uncapped, NewRefund(session=session, amount=1))

    racing = between(world.services.sessions, "save", overtaken)
    services = replace(world.services, sessions=racing)
    made = request.create(services, key, NewRefund(session=session, amount=20_00))
    assert again(world, made).amount == 20_00
    other = sold(world)
    assert try_all(world, key, [other], 30_00) == 1, "20.00 were counted once"


def test_no_concurrency_passes_the_cap(world: World) -> None:
    """Forty threads, each with a session of its own, so that only the cap stands between them."""
    sessions, key = [sold(world) for _ in range(40)], leaked(world, day=A_DAY)
    before = balance(world, BOB)
    taken = at_once([partial(try_all, world, key, [each], 10_00) for each in sessions])
    assert sum(taken) == 5
    assert moved(world, before) == A_DAY


def test_another_that_comes_between_the_look_and_the_write_does_not_pass_it(world: World) -> None:
    first, second = sold(world), sold(world)
    key = leaked(world, day=A_DAY)

    def meanwhile() -> None:
        assert try_all(world, key, [second], 30_00) == 1

    racing = between(world.services.sessions, "save", meanwhile)
    services = replace(world.services, sessions=racing)
    with pytest.raises(PermissionMissing):
        request.create(services, key, NewRefund(session=first, amount=30_00))
    assert world.session(first).refunded == 0


def test_a_cap_of_another_currency_refunds_nothing(world: World) -> None:
    """The merchant has moved to a wallet in another currency since the sale."""
    session = sold(world)
    moved_on = replace(leaked(world, once=ONCE), asset_code="EUR")
    with pytest.raises(PermissionMissing, match="limits are in EUR"):
        request.create(world.services, moved_on, NewRefund(session=session, amount=1))


def test_a_key_without_a_cap_is_limited_by_the_budget_alone(world: World) -> None:
    sessions = [sold(world) for _ in range(4)]
    before = balance(world, BOB)
    assert try_all(world, leaked(world), sessions, 30_00) == 4
    assert moved(world, before) == 120_00
    refunds = [e for one in sessions for e in world.session(one).refunds or ()]
    stored = world.services.refunds.of(tuple(each.id for each in refunds))
    assert {each.status for each in stored} == {RefundStatus.SUCCEEDED}


def test_a_key_with_a_cap_does_not_sign_in(world: World) -> None:
    """It would sign in as an owner, and make itself a key without one."""
    assert world.key().signs_in
    assert not leaked(world, once=ONCE).signs_in
    assert not leaked(world, day=A_DAY).owns


def test_a_suspended_merchant_pays_customers_back(world: World) -> None:
    session, before = sold(world), balance(world, BOB)
    suspension.suspend(world.endpoints, world.merchant.id)
    key = replace(world.key(), scopes=tuple(Scope))
    assert key.suspended is Suspension.ALONE
    assert try_all(world, key, [session], 30_00) == 1
    assert moved(world, before) == 30_00


def test_an_owner_has_no_cap_since_they_can_give_themselves_any(world: World) -> None:
    services = world.endpoints
    for each in (a_member(merchant=world.merchant.id), support(world)):
        fields = {"member": each.id, "hash": each.id, "merchant": world.merchant.id}
        invitation = an_invitation(expires_at=world.clock.now() + timedelta(days=1), **fields)
        services.people.invite(invitation)
        assert services.people.join(each, replace(invitation, ended_at=invitation.created_at))
    with pytest.raises(MemberUnexpectedState, match="cannot be limited"):
        people.limit_refunds(services, world.key(), found(world, a_member().id), RefundCap(once=1))
    limited = support(world).id
    people.limit_refunds(services, world.key(), found(world, limited), RefundCap(once=1))
    people.change_role(services, world.key(), limited, Role.DEVELOPER)
    assert found(world, limited).refund_cap == RefundCap(once=1)
    people.change_role(services, world.key(), limited, Role.OWNER)
    assert found(world, limited).refund_cap is None


def support(world: World, **cap: Any) -> Member:
    """A member of the shop who may refund up to a limit."""
    return a_member(
        id="mbr_9123456789abcdefABCDEF",
        merchant=world.merchant.id,
        role=Role.SUPPORT,
        refund_cap=RefundCap(**cap) if cap else None,
    )


def found(world: World, member: str) -> Member:
    stored = world.endpoints.people.member(member)
    assert stored is not None
    return stored


def test_a_member_moves_at_most_their_cap_of_a_day_and_at_once(world: World) -> None:
    sessions, before = [sold(world) for _ in range(6)], balance(world, BOB)
    member = support(world, once=ONCE, day=A_DAY)
    assert try_all(world, member, sessions, 20_01) == 0
    assert try_all(world, member, sessions, 20_00) == 2
    assert try_all(world, member, sessions, 10_00) == 1
    assert moved(world, before) == A_DAY


def test_no_concurrency_of_a_member_passes_the_cap(world: World) -> None:
    sessions, before = [sold(world) for _ in range(20)], balance(world, BOB)
    member = support(world, day=A_DAY)
    taken = at_once([partial(try_all, world, member, [each], 10_00) for each in sessions])
    assert sum(taken) == 5
    assert moved(world, before) == A_DAY


def test_a_member_without_a_cap_has_no_right_to_refund(world: World) -> None:
    assert not may(support(world), Right.REFUND)
    assert may(support(world, once=ONCE), Right.REFUND)
    assert not may(support(world, once=ONCE), Right.MANAGE)
