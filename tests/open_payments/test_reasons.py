"""Every recorded answer of a running provider, the reason it gives, and whether to try again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.open_payments.errors import (
    NotSent,
    OpenPaymentsError,
    OutcomeUnknown,
    Reason,
    Refused,
    UntrustedAnswer,
)
from checkout.open_payments.exchange import Exchange
from checkout.open_payments.reasons import reason
from tests.open_payments.script import Script, answer, identity, load

ANSWERS = load("answers.json")
TO_CLIENTS = [case for case in ANSWERS if "operation" in case]


def _replay(case: dict[str, Any]) -> None:
    script = Script(answer(case["status"], case["body"]))
    deadline = script.time + timedelta(seconds=60)
    exchange = Exchange(script, identity(), now=script.now, deadline=deadline)
    url = "https://wallet.example/resource"
    if case["operation"] in ("cancel_grant", "revoke_token"):
        exchange.empty(case["operation"], "DELETE", url, token="t")
    else:
        expect = 201 if case["status"] == 201 else 200
        exchange.json(case["operation"], "POST", url, token="t", expect=expect)


def _refused(name: str) -> Refused:
    """Return the refusal that the recorded answer of that name is read as."""
    with pytest.raises(Refused) as caught:
        _replay(next(case for case in TO_CLIENTS if case["name"] == name))
    return caught.value


def test_no_recorded_answer_is_left_out() -> None:
    assert len(ANSWERS) == 133 + 13 + 9
    assert all(("operation" in case) != ("seen_by" in case) for case in ANSWERS)
    not_refusals = {"success", "unknown"}
    not_recorded = {Reason.BUSY, Reason.INTERACTION_REQUIRED, Reason.CLIENT_FORM}
    assert {case["outcome"] for case in TO_CLIENTS} == {*Reason, *not_refusals} - not_recorded


@pytest.mark.parametrize("case", TO_CLIENTS, ids=lambda case: case["name"])
def test_each_recorded_answer_has_its_reason_and_is_repeated_only_where_that_may_help(
    case: dict[str, Any],
) -> None:
    if case["outcome"] == "success":
        _replay(case)
        return
    with pytest.raises(OpenPaymentsError) as caught:
        _replay(case)
    outcome = caught.value.reason if isinstance(caught.value, Refused) else "unknown"
    assert outcome == case["outcome"]
    assert caught.value.retryable == case.get("retryable", False)
    assert caught.value.operation == case["operation"]


def test_trap_07_a_quote_that_may_have_paid_already_is_never_taken_for_unpaid() -> None:
    for name in ("OP: same quoteId again at once (same token)", "OP: expired quote"):
        refused = _refused(name)
        assert (refused.reason, refused.retryable) == (Reason.INVALID_QUOTE, False)


def test_trap_10_an_unknown_id_is_not_found_although_it_says_401() -> None:
    names = [
        "IP: GET unknown id, with token",
        "IP: GET unknown id, public",
        "IP: public GET once expired",
        "IP: complete once expired",
        "quote: GET unknown",
    ]
    for name in names:
        refused = _refused(name)
        assert (refused.status, refused.reason) == (401, Reason.NOT_FOUND)


def test_trap_10_an_unknown_payment_anothers_and_keys_that_are_down_are_told_apart() -> None:
    found = [
        _refused(f"later: {name}").reason
        for name in (
            "OP: GET one that another client made",
            "OP: GET with the client's keys unreadable",
        )
    ]
    unknown = reason("get_outgoing_payment", 401, "401", "Unauthorized")
    assert (unknown, *found) == (Reason.NOT_FOUND, Reason.NOT_OURS, Reason.CLIENT_UNKNOWN)


def test_trap_06_only_one_answer_to_a_rotation_says_that_the_token_is_gone() -> None:
    gone = _refused("token: rotate again with the old one")
    assert (gone.reason, gone.retryable) == (Reason.TOKEN_GONE, False)
    for name in ("another rotates it at that moment", "the grant's row is locked"):
        refused = _refused(f"later: rotate, {name}")
        assert (refused.status, refused.reason) == (404, Reason.NOT_ROTATED)
        assert refused.retryable


def test_trap_11_an_expired_token_is_told_by_403_and_asks_for_rotation() -> None:
    refused = _refused("token: expired, create")
    assert (refused.status, refused.reason) == (403, Reason.TOKEN_INACTIVE)


def test_trap_12_wallets_that_are_not_connected_are_a_reason_of_their_own() -> None:
    assert reason("create_quote", 400, "400", "invalid receiver") is Reason.INVALID_RECEIVER


@pytest.mark.parametrize("status", [408, 409, 425, 429])
def test_a_busy_server_says_nothing_about_the_effect(status: int) -> None:
    why = reason("create_outgoing_payment", status, str(status), "invalid quote")
    assert why is Reason.BUSY
    once = {"create_outgoing_payment", "continue_grant", "rotate_token"}
    for operation in once | {"create_quote", "get_incoming_payment"}:
        busy = Refused("busy", operation=operation, status=status, reason=Reason.BUSY)
        assert busy.retryable is (operation not in once)


def test_only_wrong_state_on_complete_means_that_it_is_closed() -> None:
    operation = "complete_incoming_payment"
    assert reason(operation, 409, "409", "wrong state") is Reason.WRONG_STATE
    assert reason(operation, 409, "409", "lock held") is Reason.BUSY
    assert reason("create_quote", 409, "409", "wrong state") is Reason.BUSY


@pytest.mark.parametrize(
    ("operation", "status", "code", "description", "why"),
    [
        ("rotate_token", 404, "", "", Reason.NOT_FOUND),
        ("revoke_token", 410, "", "", Reason.NOT_FOUND),
        ("rotate_token", 400, "invalid_rotation", "", Reason.NOT_ROTATED),
        ("rotate_token", 401, "invalid_client", "invalid access token", Reason.TOKEN_GONE),
        ("get_outgoing_payment", 404, "404", "Outgoing payment does not exist", Reason.NOT_OURS),
        ("get_quote", 404, "404", "Quote does not exist", Reason.NOT_OURS),
        ("get_outgoing_payment", 404, "", "Not Found", Reason.NOT_FOUND),
        ("continue_grant", 404, "", "", Reason.NOT_FOUND),
        ("continue_grant", 403, "user_denied", "", Reason.GRANT_GONE),
        ("continue_grant", 401, "", "", Reason.OTHER),
        ("get_wallet_address", 404, "", "", Reason.NOT_FOUND),
        ("get_jwks", 410, "", "", Reason.NOT_FOUND),
        ("get_incoming_payment", 401, "401", "Invalid Token", Reason.TOKEN_INACTIVE),
        ("create_incoming_payment", 403, "403", "action not performed", Reason.OTHER),
        ("create_quote", 418, "too_fast", "", Reason.OTHER),
        ("continue_grant", 429, "too_fast", "", Reason.TOO_FAST),
        ("continue_grant", 429, "", "Too many requests", Reason.BUSY),
        ("create_quote", 429, "too_fast", "", Reason.BUSY),
    ],
)
def test_answers_that_were_not_recorded_fall_to_the_nearest_row(
    operation: str, status: int, code: str, description: str, why: Reason
) -> None:
    assert reason(operation, status, code, description) is why


@pytest.mark.parametrize("error", [OutcomeUnknown, UntrustedAnswer])
def test_trap_06_a_lost_payment_continuation_or_rotation_is_never_sent_again(
    error: type[OutcomeUnknown],
) -> None:
    for operation in ("create_outgoing_payment", "continue_grant", "rotate_token"):
        assert not error("lost", operation=operation).retryable


def test_the_unknown_is_repeated_where_no_money_may_have_moved() -> None:
    assert OutcomeUnknown("lost", operation="create_quote").retryable
    assert not UntrustedAnswer("odd", operation="create_quote").retryable
    assert NotSent("no", operation="create_outgoing_payment").retryable
