"""Redirects are followed where a wallet address is read, and nowhere else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from client_calls import CALLS, DOCUMENT
from client_script import ALICE, CONTINUATION, TOKEN, Script, answer, words

from open_payments import urls
from open_payments.errors import (
    BadRedirect,
    NotSent,
    OutcomeUnknown,
    Refused,
    UntrustedAnswer,
)
from open_payments.transports import Response

TYPED = "https://alice.example/pay"


def redirect(location: str | None, status: int = 302) -> Response:
    return Response(status, {} if location is None else {"location": location}, b"moved")


def read(script: Script) -> list[str]:
    """Read the typed wallet address as Alice's; return the URLs that were asked."""
    assert script.client().get_wallet_address(TYPED) == ALICE
    return [request.url for request in script.sent]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_each_status_of_a_redirect_leads_to_the_wallet(status: int) -> None:
    script = Script(redirect(ALICE.id, status), answer(200, DOCUMENT))
    assert read(script) == [TYPED, ALICE.id]  # its own server served it: no second reading
    assert [dict(request.headers) for request in script.sent] == [
        {"Accept": "application/json"}
    ] * 2
    assert all(request.body is None for request in script.sent)


@pytest.mark.parametrize("status", [300, 304, 305, 306])
def test_other_answers_of_the_kind_are_no_redirects(status: int) -> None:
    script = Script(redirect(ALICE.id, status))
    with pytest.raises(UntrustedAnswer, match=f"{status} in place of 200"):
        read(script)


def test_three_redirects_are_followed_and_four_are_not() -> None:
    hops = [redirect(f"https://{name}.example/") for name in ("one", "two")]
    script = Script(*hops, redirect(ALICE.id), answer(200, DOCUMENT))
    assert read(script) == [TYPED, "https://one.example/", "https://two.example/", ALICE.id]
    script = Script(*hops, redirect("https://three.example/"), redirect(ALICE.id))
    with pytest.raises(BadRedirect, match="more than 3 redirects"):
        read(script)
    assert len(script.sent) == 4


def test_a_loop_ends() -> None:
    script = Script(*[redirect(TYPED)] * 4)
    with pytest.raises(BadRedirect, match="more than 3"):
        read(script)
    assert len(script.sent) == 4


@pytest.mark.parametrize(
    "location",
    [
        *(None, "", " ", "https://wallet.example/a b", "https://wallet.example\\alice"),
        *(f"{ALICE.id}\r\nX: y", f"{ALICE.id}\t", f"{ALICE.id}, {ALICE.id}"),
        "https://wallet.example/" + "a" * 2048,
        *words("""
        http://wallet.example/alice http://alice.example/pay //user@wallet.example/alice
        https://user@wallet.example/alice https://user:secret@wallet.example/alice
        https://alice.example@wallet.example/alice ftp://wallet.example/alice file:///etc/passwd
        data:application/json,{} javascript:alert(1) https:///alice https:alice https:/alice https://wallet.example:0/alice
        https://wallet.example/a#b https://wallet.example/é https://wallet.example/%2e/../alice
        https://wallet_1.example/alice https://[::1/alice
        """),
    ],
)
def test_a_redirect_to_what_is_no_https_url_is_not_followed(location: str | None) -> None:
    script = Script(redirect(location))
    with pytest.raises(BadRedirect) as caught:
        read(script)
    assert len(script.sent) == 1
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("/alice", "https://alice.example/alice"),
        ("alice", "https://alice.example/alice"),
        ("?wallet=1", "https://alice.example/pay?wallet=1"),
        ("//wallet.example/alice", "https://wallet.example/alice"),
        ("../alice", "https://alice.example/alice"),
        ("HTTPS://Wallet.Example:443/alice", "https://wallet.example/alice"),
    ],
)
def test_a_relative_redirect_is_resolved(location: str, asked: str) -> None:
    script = Script(redirect(location), answer(200, DOCUMENT), answer(200, DOCUMENT))
    assert read(script)[1] == asked
    assert urls.joined(TYPED, location) == asked


def test_a_document_found_elsewhere_is_confirmed_by_the_server_of_its_id() -> None:
    forged = DOCUMENT | {"authServer": "https://evil.example"}
    served = "https://mirror.example/alice"
    script = Script(redirect(served), answer(200, forged), answer(200, DOCUMENT))
    assert read(script) == [TYPED, served, ALICE.id]


def test_the_server_of_the_id_confirms_it_itself() -> None:
    script = Script(redirect("/alice"), answer(200, DOCUMENT), redirect("https://other.example/"))
    with pytest.raises(UntrustedAnswer, match="302 in place of 200"):
        read(script)
    assert len(script.sent) == 3


def test_a_redirect_that_the_transport_refuses_ends_the_reading() -> None:
    script = Script(redirect("https://10.0.0.1/alice"), NotSent("address refused"))
    with pytest.raises(NotSent) as caught:
        read(script)
    assert caught.value.operation == "get_wallet_address"


@pytest.mark.parametrize(("status", "error"), [(404, Refused), (500, OutcomeUnknown)])
def test_an_error_behind_a_redirect_is_that_error(status: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(Script(redirect(ALICE.id), answer(status)))


def test_all_redirects_and_the_confirmation_together_take_no_longer_than_a_document_may() -> None:
    script = Script(*[redirect(ALICE.id)] * 3)
    script.takes = timedelta(seconds=1.5)
    with pytest.raises(NotSent, match="no time left"):
        read(script)
    assert script.timeouts == [3.5, 2.0, 0.5]
    script = Script(redirect(ALICE.id), answer(200, DOCUMENT))
    script.takes = timedelta(seconds=1.5)
    script.client(seconds=2).get_wallet_address(TYPED)
    assert script.timeouts == [2.0, 0.5]
    script = Script(redirect("https://mirror.example/alice"), *[answer(200, DOCUMENT)] * 2)
    script.takes = timedelta(seconds=1.5)
    read(script)
    assert script.timeouts == [3.5, 2.0, 0.5]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("call", sorted(CALLS.keys() - {"document"}))
def test_no_other_call_follows_a_redirect(call: str, status: int) -> None:
    script = Script(redirect(ALICE.id, status))
    with pytest.raises(UntrustedAnswer):
        CALLS[call][2](script.client())
    assert len(script.sent) == 1


def test_nor_does_a_call_whose_answer_is_empty() -> None:
    script = Script(redirect(ALICE.id), redirect(ALICE.id))
    client = script.client()
    with pytest.raises(UntrustedAnswer):
        client.cancel_grant(ALICE.auth_server, CONTINUATION)
    with pytest.raises(UntrustedAnswer):
        client.revoke_token(ALICE.auth_server, TOKEN)
    assert len(script.sent) == 2
