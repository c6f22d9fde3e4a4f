"""Each check that protects money or a secret is removed once: a test of this package must fail."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any

import pytest
import test_client
import test_exchange
import test_interaction
import test_protocol
import test_reasons
import test_tokens
from client_script import money

from open_payments import answers, errors, exchange, interaction, protocol, tokens
from open_payments.errors import OpenPaymentsError, OutcomeUnknown

EVIL = "https://evil.example"
NOTICED = (AssertionError, pytest.fail.Exception, OpenPaymentsError, IndexError)
contradicts = test_protocol.test_an_answer_that_contradicts_its_question_is_not_believed


@contextmanager
def changed(function: Any, old: str, new: str) -> Iterator[None]:
    """Replace `old`, which is there once, in the source of `function`."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, old
    compiled = compile(source.replace(old, new), function.__code__.co_filename, "exec")
    code = next(each for each in compiled.co_consts if isinstance(each, CodeType))
    original, function.__code__ = function.__code__, code
    try:
        yield
    finally:
        function.__code__ = original


BUGS: dict[str, tuple[Any, str, str, Callable[[], object]]] = {
    "a token goes to any server": (
        protocol.OpenPayments._check_home,
        "origin(url) == origin(auth_server) and ",
        "",
        partial(
            test_protocol.test_a_token_goes_back_only_to_the_server_that_it_came_from,
            f"{EVIL}/continue/1",
        ),
    ),
    "a payment of somebody else is believed": (
        protocol.OpenPayments.create_outgoing_payment,
        "if answered != asked:",
        "if False:",
        partial(contradicts, "payment", "receiver", f"{EVIL}/incoming-payments/1"),
    ),
    "an invoice over another amount is believed": (
        protocol.OpenPayments.create_incoming_payment,
        "if found.incoming_amount != amount:",
        "if False:",
        partial(contradicts, "incoming", "incomingAmount.value", "2501"),
    ),
    "a grant with other limits is believed": (
        answers.granted_payment,
        "granted.amount(name) != amount",
        "False",
        partial(
            test_protocol.test_a_budget_that_was_granted_otherwise_is_not_believed,
            "limits.debitAmount",
            money(10001),
        ),
    ),
    "a quote may deliver less than is owed": (
        answers.quote,
        " or found.receive.value < receive.value",
        "",
        test_client.test_a_quote_that_delivers_less_than_the_invoice_asks_for_is_not_believed,
    ),
    "any hash proves the return": (
        interaction.matches,
        "hmac.compare_digest(expected, digest) and ",
        "",
        partial(
            test_interaction.test_a_hash_of_anything_else_matches_nothing, {"interact_ref": "x"}
        ),
    ),
    "a call takes as long as it likes": (
        exchange.Exchange._send,
        "left = min(",
        "left = max(",
        test_exchange.test_a_call_takes_no_longer_than_its_own_limit_or_the_time_that_is_left,
    ),
    "a server that failed has refused": (
        exchange.Exchange._check_status,
        "if 400 <= response.status < 500:",
        "if 400 <= response.status:",
        partial(test_exchange.test_a_failed_server_may_have_done_it, 500),
    ),
    "one token for all servers of a wallet": (
        tokens.TokenKeeper._slot,
        "auth_server, resource_server, access",
        "auth_server, '', access",
        test_tokens.test_each_resource_server_has_a_token_of_its_own_which_alone_is_renewed,
    ),
    "only the first page of a list is read": (
        protocol.OpenPayments._page,
        'page.text("endCursor") if page.flag("hasNextPage") else None',
        "None",
        test_protocol.test_a_list_is_paged_by_its_cursor,
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_check_that_is_missing_is_noticed(bug: str) -> None:
    function, old, new, test = BUGS[bug]
    test()
    with changed(function, old, new), pytest.raises(NOTICED):
        test()


def test_a_payment_that_may_be_sent_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    test = partial(
        test_reasons.test_trap_06_a_lost_payment_continuation_or_rotation_is_never_sent_again,
        OutcomeUnknown,
    )
    test()
    monkeypatch.setattr(errors, "_ONCE", frozenset({"continue_grant", "rotate_token"}))
    with pytest.raises(AssertionError):
        test()
