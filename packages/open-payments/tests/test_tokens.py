"""Test the token keeper: no extra call while warm, one renewal when not, no rotation twice."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from unittest.mock import Mock

import pytest
from client_script import ALICE, SHOP, Script, answer, header, identity

from open_payments import tokens
from open_payments.errors import OutcomeUnknown, Reason, Refused
from open_payments.models import AccessToken, ClientIdentity
from open_payments.protocol import Access, OpenPayments
from open_payments.tokens import TokenKeeper
from open_payments.transports import Response

SERVER, RESOURCES = ALICE.auth_server, ALICE.resource_server
INACTIVE = Refused("no", operation="create_quote", status=403, reason=Reason.TOKEN_INACTIVE)


def _granted(value: str, expires_in: int | None = 600) -> Response:
    token: dict[str, object] = {
        "value": value,
        "manage": f"https://auth.wallet.example/token/{value}",
    }
    if expires_in is not None:
        token["expires_in"] = expires_in
    return answer(200, {"access_token": token})


def _kept(*answers: Response | Exception) -> tuple[Script, TokenKeeper]:
    script = Script(*answers)
    return script, TokenKeeper(script.now)


def _use(keeper: TokenKeeper, client: OpenPayments, access: Access = Access.QUOTE) -> str:
    return keeper.use(client, SERVER, RESOURCES, access, lambda token: token.value)


def _calls(script: Script) -> list[str]:
    return [f"{request.method} {request.url.rpartition('/')[2]}" for request in script.sent]


def test_warm_use_sends_nothing_but_the_call() -> None:
    script, keeper = _kept(_granted("A"))
    assert [_use(keeper, script.client()) for _ in range(3)] == ["A", "A", "A"]
    assert _calls(script) == ["POST tenant"]


def test_each_client_server_and_access_has_a_token_of_its_own() -> None:
    script, keeper = _kept(*(_granted(value) for value in "ABCD"))
    other = ClientIdentity("https://other.example/", "k", identity().private_key)
    new_key = ClientIdentity(identity().wallet_address, "k2", identity().private_key)
    assert _use(keeper, script.client()) == "A"
    assert _use(keeper, script.client(), Access.INCOMING_PAYMENT) == "B"
    assert _use(keeper, script.client(identity=other)) == "C"
    assert _use(keeper, script.client(identity=new_key)) == "D"
    assert _use(keeper, script.client()) == "A"


def test_each_resource_server_has_a_token_of_its_own_which_alone_is_renewed() -> None:
    script, keeper = _kept(*(_granted(value) for value in "ABC"))
    assert _use(keeper, script.client()) == "A"
    seen: list[str] = []

    def stranger(token: AccessToken) -> str:
        seen.append(token.value)
        raise INACTIVE

    with pytest.raises(Refused):
        keeper.use(script.client(), SERVER, "https://evil.example", Access.QUOTE, stranger)
    assert seen == ["B", "C"]
    assert _calls(script) == ["POST tenant", "POST tenant", "POST B"]
    assert _use(keeper, script.client()) == "A"


def test_each_wallet_that_a_grant_names_has_a_token_of_its_own() -> None:
    script, keeper = _kept(*(_granted(value) for value in "AB"))
    use = partial(keeper.use, script.client(), SERVER, RESOURCES, Access.INCOMING_PAYMENT)
    found = [
        use(lambda token: token.value, wallet=wallet) for wallet in (None, ALICE.id, SHOP, ALICE.id)
    ]
    assert found == ["A", "B", "A", "B"]
    asked = [json.loads(request.body or b"")["access_token"]["access"] for request in script.sent]
    assert [access[0]["identifier"] for access in asked] == [SHOP, ALICE.id]


def test_a_token_about_to_expire_is_rotated_before_use() -> None:
    script, keeper = _kept(_granted("A", 600), _granted("B", 600))
    assert _use(keeper, script.client()) == "A"
    script.time += timedelta(seconds=569)
    assert _use(keeper, script.client()) == "A"
    script.time += timedelta(seconds=1)
    assert _use(keeper, script.client()) == "B"
    assert _calls(script) == ["POST tenant", "POST A"]
    assert header(script.sent[1], "Authorization") == "GNAP A"


def test_a_token_without_an_expiry_is_used_until_it_is_refused() -> None:
    script, keeper = _kept(_granted("A", None))
    _use(keeper, script.client())
    script.time += timedelta(days=400)
    assert _use(keeper, script.client()) == "A"


def test_trap_11_an_inactive_token_is_renewed_once_and_the_call_made_once_more() -> None:
    script, keeper = _kept(_granted("A"), _granted("B"))
    call = Mock(side_effect=[INACTIVE, "done"])
    assert keeper.use(script.client(), SERVER, RESOURCES, Access.QUOTE, call) == "done"
    assert [tried.args[0].value for tried in call.call_args_list] == ["A", "B"]
    assert _calls(script) == ["POST tenant", "POST A"]


@pytest.mark.parametrize(
    "failure",
    [
        answer(401, {"error": {"code": "invalid_client", "description": "invalid access token"}}),
        answer(404, "Not Found"),
        answer(500, "Internal Server Error"),
        answer(200, {"access_token": {}}),
        OutcomeUnknown("the answer was lost"),
    ],
    ids=["gone", "missing", "failed", "nonsense", "lost"],
)
def test_trap_06_a_failed_rotation_is_followed_by_a_new_grant_and_never_repeated(
    failure: Response | Exception,
) -> None:
    script, keeper = _kept(_granted("A", 0), failure, _granted("B"))
    assert _use(keeper, script.client()) == "A"
    assert _use(keeper, script.client()) == "B"
    assert _use(keeper, script.client()) == "B"
    assert _calls(script) == ["POST tenant", "POST A", "POST tenant"]


def test_after_a_rotation_and_a_grant_that_both_failed_the_next_use_asks_for_a_grant() -> None:
    lost = OutcomeUnknown("lost")
    script, keeper = _kept(_granted("A", 0), lost, lost, _granted("B"))
    _use(keeper, script.client())
    with pytest.raises(OutcomeUnknown):
        _use(keeper, script.client())
    assert _use(keeper, script.client()) == "B"
    assert _calls(script) == ["POST tenant", "POST A", "POST tenant", "POST tenant"]


def test_a_token_refused_twice_is_forgotten_and_the_refusal_told() -> None:
    script, keeper = _kept(_granted("A"), _granted("B"), _granted("C"))
    with pytest.raises(Refused) as caught:
        keeper.use(script.client(), SERVER, RESOURCES, Access.QUOTE, Mock(side_effect=INACTIVE))
    assert caught.value is INACTIVE
    assert _use(keeper, script.client()) == "C"
    assert _calls(script) == ["POST tenant", "POST A", "POST tenant"]


@pytest.mark.parametrize("after", [0, 1])
def test_any_other_error_of_the_call_is_told_at_once(after: int) -> None:
    script, keeper = _kept(_granted("A"), _granted("B"))
    other = Refused("no", operation="create_quote", status=400, reason=Reason.INVALID_RECEIVER)
    call = Mock(side_effect=[*([INACTIVE] * after), other])
    with pytest.raises(Refused, match="no") as caught:
        keeper.use(script.client(), SERVER, RESOURCES, Access.QUOTE, call)
    assert caught.value is other
    assert len(script.sent) == 1 + after
    assert _use(keeper, script.client()) == "AB"[after]


def test_a_token_that_another_thread_renewed_is_taken_over_and_not_rotated_again() -> None:
    script, keeper = _kept(_granted("A"), _granted("B"))
    _use(keeper, script.client())
    both_have_it = threading.Barrier(2, timeout=10)
    used: list[str] = []

    def call(token: AccessToken) -> str:
        if token.value == "A":
            both_have_it.wait()
            raise INACTIVE
        used.append(token.value)
        return token.value

    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(keeper.use, script.client(), SERVER, RESOURCES, Access.QUOTE, call)
    assert used == ["B", "B"]
    assert _calls(script) == ["POST tenant", "POST A"]


def test_a_token_that_another_thread_replaced_is_not_forgotten() -> None:
    script, keeper = _kept(_granted("A"), _granted("B"), _granted("C", 600))

    def call(token: AccessToken) -> str:
        if token.value == "B":  # meanwhile, elsewhere: B turned out inactive and was renewed

            def elsewhere(inner: AccessToken) -> str:
                if inner.value == "B":
                    raise INACTIVE
                return inner.value

            assert keeper.use(script.client(), SERVER, RESOURCES, Access.QUOTE, elsewhere) == "C"
        raise INACTIVE

    with pytest.raises(Refused):
        keeper.use(script.client(), SERVER, RESOURCES, Access.QUOTE, call)
    assert _use(keeper, script.client()) == "C"


def test_the_number_of_kept_tokens_is_bounded_and_the_least_used_goes_first() -> None:
    most = tokens._MOST
    script, keeper = _kept(*(_granted(f"T{at}", None) for at in range(most + 2)))

    def use(at: int) -> str:
        server = f"https://auth.wallet.example/{at}"
        return keeper.use(
            script.client(), server, RESOURCES, Access.QUOTE, lambda token: token.value
        )

    for at in range(most):
        use(at)
    assert use(0) == "T0"  # used lately
    assert use(most) == f"T{most}"  # one too many: 1 goes
    assert use(0) == "T0"
    assert use(1) == f"T{most + 1}"


def test_a_kept_token_shows_in_no_repr() -> None:
    script, keeper = _kept(_granted("hidden"))
    _use(keeper, script.client())
    assert "hidden" not in repr(list(keeper._slots.values()))
