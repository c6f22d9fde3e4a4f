"""The client: servers found by wallet address, tokens kept, one deadline over all calls."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from client_calls import (
    ASKED,
    DEBIT,
    DOCUMENT,
    GRANTED,
    INCOMING,
    LIMITS,
    PAID,
    PENDING,
    QUOTE,
    QUOTED,
    RECEIVER,
    SPENT,
)
from client_script import ALICE, CONTINUATION, SHOP, START, TOKEN, header, identity, money

import open_payments
from open_payments import (
    AccessToken,
    Grant,
    Interval,
    Limits,
    OpenPayments,
    PendingGrant,
    SigningKey,
    WalletAddress,
    errors,
)
from open_payments.models import Continuation, PublicIncomingPayment
from open_payments.testing import Script, answer

KEY = SigningKey(identity().key_id, identity().private_key)
FINISH = "https://shop.example/return?order=42"
TILL = WalletAddress(
    SHOP, "USD", 2, "https://auth.shop.example/tenant", "https://shop.example/tenant", "Till"
)
GRANT = Grant(ALICE, LIMITS, TOKEN)
PAYING = Limits(receiver=RECEIVER, debit_amount=DEBIT)
WAITING = {"continue": PENDING["continue"]}
TILLS_TOKEN = {
    "access_token": {
        "value": "T1",
        "manage": "https://auth.shop.example/token/1",
        "expires_in": 600,
    }
}


def client(script: Script, **options: Any) -> OpenPayments:
    return OpenPayments(
        SHOP,
        KEY,
        transport=script,
        now=script.now,
        sleep=script.sleep,
        new_nonce=lambda: "our-nonce",
        **options,
    )


def bodies(script: Script) -> list[Any]:
    return [json.loads(each.body) if each.body else None for each in script.sent]


def test_importing_the_package_loads_neither_cryptography_nor_httpx() -> None:
    code = (
        "import sys, open_payments, open_payments.urls, open_payments.models\n"
        "import open_payments.errors\n"
        "assert not {'cryptography', 'httpx', 'httpcore', 'idna'} & sys.modules.keys()\n"
        "open_payments.OpenPayments\n"
        "assert 'httpx' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_public_name_is_there_and_no_other_is() -> None:
    for name in open_payments.__all__:
        assert getattr(open_payments, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Wallet'"):
        open_payments.Wallet  # noqa: B018 - read for its error


def test_a_typed_wallet_address_is_read_at_its_url() -> None:
    script = Script(answer(200, DOCUMENT))
    assert client(script).wallet_address(" $wallet.example/alice ") == ALICE
    assert script.sent[0].url == ALICE.id


def test_a_client_without_a_key_reads_what_is_public_and_signs_nothing() -> None:
    view = {"receivedAmount": money(5), "authServer": ALICE.auth_server}
    script = Script(answer(200, DOCUMENT), answer(200, {"keys": []}), answer(200, view))
    reader = OpenPayments.public(transport=script)
    assert reader.wallet_address(ALICE.id) == ALICE
    assert reader.keys(ALICE) == ()
    [received] = [reader.incoming_payments.get_public(RECEIVER)]
    assert received == PublicIncomingPayment(open_payments.Amount(5, "EUR", 2), ALICE.auth_server)
    assert not any("Signature" in each.headers for each in script.sent)
    with pytest.raises(ValueError, match="no identity"):
        reader.incoming_payments.get(TILL, RECEIVER)


def test_the_default_transport_connects_to_no_internal_address() -> None:
    inside = WalletAddress("https://127.0.0.1/alice", "EUR", 2, "", "")
    with pytest.raises(errors.NotSent, match="address refused"):
        OpenPayments.public().keys(inside)


def test_a_payment_is_created_with_one_token_that_serves_the_following_calls() -> None:
    noted = {**INCOMING, "metadata": {"order": "42"}}
    script = Script(answer(200, TILLS_TOKEN), answer(201, noted), answer(200, INCOMING))
    shop = client(script)
    made = shop.incoming_payments.create(
        TILL, ASKED, expires_in=timedelta(minutes=30), metadata={"order": "42"}
    )
    assert made.metadata == {"order": "42"}
    assert shop.incoming_payments.get(TILL, made.id) == made
    assert bodies(script)[1] == {
        "walletAddress": SHOP,
        "incomingAmount": money(2500, "USD"),
        "metadata": {"order": "42"},
        "expiresAt": "2026-11-20T12:30:00.000Z",
    }
    assert [each.url for each in script.sent] == [
        TILL.auth_server,
        "https://shop.example/tenant/incoming-payments",
        RECEIVER,
    ]


def test_a_payment_is_completed() -> None:
    script = Script(answer(200, TILLS_TOKEN), answer(200, {**INCOMING, "completed": True}))
    assert client(script).incoming_payments.complete(TILL, RECEIVER).completed


def test_lists_ask_for_their_own_token_and_follow_the_pages() -> None:
    second = {**INCOMING, "id": RECEIVER + "2"}
    pages = [
        {"result": [INCOMING], "pagination": {"hasNextPage": True, "endCursor": "c 1"}},
        {"result": [second], "pagination": {"hasNextPage": False}},
    ]
    script = Script(answer(200, TILLS_TOKEN), *(answer(200, page) for page in pages))
    found = list(client(script).incoming_payments.list(TILL, page_size=1))
    assert [each.id for each in found] == [RECEIVER, RECEIVER + "2"]
    assert bodies(script)[0]["access_token"]["access"] == [
        {"type": "incoming-payment", "actions": ["read", "list"], "identifier": SHOP}
    ]
    base = f"{RECEIVER.removesuffix('/1')}?"
    wallet = "wallet-address=https%3A%2F%2Fshop.example%2Ftill"
    assert [each.url for each in script.sent[1:]] == [
        f"{base}first=1&{wallet}",
        f"{base}cursor=c+1&first=1&{wallet}",
    ]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            {"result": [{**INCOMING, "walletAddress": ALICE.id}], "pagination": {}}, id="another's"
        ),
        pytest.param(
            {"result": [{**INCOMING, "id": "https://other.example/1"}], "pagination": {}},
            id="elsewhere",
        ),
    ],
)
def test_a_list_with_a_payment_that_cannot_be_there_is_not_believed(page: object) -> None:
    script = Script(answer(200, TILLS_TOKEN), answer(200, page))
    with pytest.raises(errors.UntrustedAnswer):
        list(client(script).incoming_payments.list(TILL))


def alices_token() -> dict[str, Any]:
    return {"access_token": GRANTED["access_token"]}


def test_a_quote_is_of_the_amount_that_the_receiver_asks_for_or_of_one_that_is_given() -> None:
    script = Script(
        answer(200, TILLS_TOKEN),
        answer(201, INCOMING),
        answer(200, alices_token()),
        *(answer(201, QUOTED) for _ in range(3)),
        answer(200, QUOTED),
    )
    shop = client(script)
    invoice = shop.incoming_payments.create(TILL, ASKED)
    quote = shop.quotes.create(ALICE, receiver=invoice)
    assert (quote, quote.receiver) == (QUOTE_WITH_END, RECEIVER)
    shop.quotes.create(ALICE, receiver=invoice.id, receive=ASKED)
    shop.quotes.create(ALICE, receiver=invoice, debit=DEBIT)
    assert shop.quotes.get(ALICE, quote) == quote
    common = {"walletAddress": ALICE.id, "receiver": RECEIVER, "method": "ilp"}
    assert bodies(script)[3:] == [
        common,
        {**common, "receiveAmount": money(2500, "USD")},
        {**common, "debitAmount": money(2442)},
        None,
    ]


QUOTE_WITH_END = open_payments.Quote(
    QUOTE.id, QUOTE.debit, QUOTE.receive, START + timedelta(minutes=5)
)


@pytest.mark.parametrize("value", [2499, 2501])
def test_a_quote_of_another_amount_than_the_fixed_one_is_not_believed(value: int) -> None:
    wrong = {**QUOTED, "receiveAmount": money(value, "USD")}
    script = Script(answer(200, alices_token()), answer(201, wrong))
    with pytest.raises(errors.UntrustedAnswer, match="receiveAmount"):
        client(script).quotes.create(ALICE, receiver=RECEIVER, receive=ASKED)


def test_a_quote_that_delivers_less_than_the_invoice_asks_for_is_not_believed() -> None:
    less = {**QUOTED, "receiveAmount": money(2499, "USD")}
    script = Script(
        answer(200, TILLS_TOKEN),
        answer(201, INCOMING),
        answer(200, alices_token()),
        answer(201, less),
    )
    shop = client(script)
    invoice = shop.incoming_payments.create(TILL, ASKED)
    with pytest.raises(errors.UntrustedAnswer, match="receiveAmount"):
        shop.quotes.create(ALICE, receiver=invoice)


def test_a_quote_fixes_one_amount() -> None:
    script = Script(answer(200, alices_token()))
    with pytest.raises(ValueError, match="one amount"):
        client(script).quotes.create(ALICE, receiver=RECEIVER, receive=ASKED, debit=DEBIT)


def pending(script: Script, finish_uri: str | None = FINISH) -> PendingGrant:
    return client(script).grants.request(ALICE, PAYING, finish_uri=finish_uri)


def test_a_grant_is_requested_with_a_nonce_of_its_own_and_shows_no_secret() -> None:
    script = Script(answer(200, PENDING))
    found = pending(script)
    assert found.redirect == "https://auth.wallet.example/interact/1"
    assert bodies(script)[0]["interact"] == {
        "start": ["redirect"],
        "finish": {"method": "redirect", "uri": FINISH, "nonce": "our-nonce"},
    }
    for secret in ("our-nonce", "9E184C09C8310409", "33OMUKMKSKU80UPRY5NM"):
        assert secret not in repr(found)


@pytest.mark.parametrize(
    "limits",
    [
        None,
        PAYING,
        Limits(receive_amount=ASKED, interval=Interval(START, months=1)),
        Limits(debit_amount=DEBIT, interval=Interval(START, days=7)),
    ],
)
def test_a_pending_grant_is_kept_as_text(limits: Limits | None) -> None:
    script = Script(answer(200, PENDING))
    found = client(script).grants.request(ALICE, limits, finish_uri=FINISH)
    assert PendingGrant.load(found.dump()) == found


def test_a_text_that_is_no_pending_grant_is_an_error() -> None:
    for text in ("{}", "[]", "1", "x", '{"continuation": 1}'):
        with pytest.raises(ValueError):  # noqa: PT011 - a JSON error, or ours
            PendingGrant.load(text)
    broken = PendingGrant(ALICE, None, "", Continuation("u", "t", START))
    object.__setattr__(broken, "limits", object())
    with pytest.raises(TypeError):
        broken.dump()


# The hash of "our-nonce", 9E184C09C8310409, "ref-1" and Alice's authorization server.
HASH = "AUppyUBbnonrVLaogcvOUu7NN%2FHmn3wWQkkPm11gzWk%3D"


def test_only_the_return_with_the_right_hash_gives_a_reference() -> None:
    found = pending(Script(answer(200, PENDING)))
    assert found.verify(f"?order=42&hash={HASH}&interact_ref=ref-1") == "ref-1"
    assert found.verify({"hash": unquote(HASH), "interact_ref": "ref-1"}) == "ref-1"
    for forged in (
        f"hash={HASH}&interact_ref=ref-2",
        "interact_ref=ref-1",
        "hash=&interact_ref=ref-1",
        f"hash={HASH[:-4]}AAA%3D&interact_ref=ref-1",
        "",
    ):
        with pytest.raises(errors.NotFromThisServer):
            found.verify(forged)
    with pytest.raises(errors.Declined):
        found.verify("order=42&result=grant_rejected")


def test_a_grant_that_is_polled_believes_no_return() -> None:
    found = pending(Script(answer(200, PENDING)), finish_uri=None)
    with pytest.raises(errors.NotFromThisServer):
        found.verify(f"hash={HASH}&interact_ref=ref-1")


def test_redeeming_waits_for_the_servers_moment_and_not_longer_than_the_deadline() -> None:
    script = Script(answer(200, PENDING), answer(200, GRANTED))
    shop = client(script, timeout=60)
    waiting = shop.grants.request(ALICE, PAYING, finish_uri=FINISH)
    for seconds in (29, 30):
        with pytest.raises(errors.NotSent, match="before the deadline"):
            shop.within(seconds).grants.continue_(waiting, "ref-1")
    assert script.time == START
    granted = shop.grants.continue_(waiting, "ref-1")
    assert script.time == START + timedelta(seconds=30)
    assert granted.token == AccessToken(
        "2E6F040D518B6F1A0883",
        "https://auth.wallet.example/token/2",
        START + timedelta(seconds=630),
    )
    assert bodies(script)[1] == {"interact_ref": "ref-1"}


def test_a_token_is_not_lost_because_of_a_faulty_continuation() -> None:
    for faulty in (None, {"uri": "https://other.example/1", "access_token": {"value": "x"}}):
        script = Script(answer(200, PENDING), answer(200, {**GRANTED, "continue": faulty}))
        shop = client(script, timeout=60)
        granted = shop.grants.continue_(shop.grants.request(ALICE, PAYING, finish_uri=FINISH), "r")
        assert granted.token is not None
        assert granted.continuation is None
        with pytest.raises(ValueError, match="no way to cancel"):
            shop.grants.cancel(granted)


def test_an_answer_without_token_subject_or_continuation_is_not_believed() -> None:
    script = Script(answer(200, PENDING), answer(200, {}))
    shop = client(script, timeout=60)
    with pytest.raises(errors.UntrustedAnswer):
        shop.grants.continue_(shop.grants.request(ALICE, PAYING, finish_uri=FINISH), "r")


def test_a_grant_is_polled_until_the_customer_has_decided() -> None:
    script = Script(answer(200, PENDING), answer(200, WAITING), answer(200, GRANTED))
    shop = client(script, timeout=60)
    waiting = shop.grants.request(ALICE, PAYING)
    assert "finish" not in bodies(script)[0]["interact"]
    still = shop.grants.poll(waiting)
    assert isinstance(still, PendingGrant)
    assert still.continuation.not_before == START + timedelta(seconds=60)
    granted = shop.grants.poll(still)
    assert isinstance(granted, Grant)
    assert granted.token is not None
    assert [each.body for each in script.sent[1:]] == [None, None]
    with pytest.raises(errors.OutcomeUnknown) as lost:
        client(Script(errors.OutcomeUnknown("cut off"))).grants.poll(
            PendingGrant(ALICE, PAYING, "", CONTINUATION)
        )
    assert not lost.value.retryable  # the answer may have had the token


def test_the_owner_of_a_wallet_proves_the_ownership_without_a_payment() -> None:
    proved = {**WAITING, "subject": {"sub_ids": [{"id": ALICE.id, "format": "uri"}]}}
    script = Script(answer(200, PENDING), answer(200, proved))
    shop = client(script, timeout=60)
    granted = shop.grants.continue_(shop.grants.subject(ALICE, finish_uri=FINISH), "ref-1")
    assert granted.subject == (ALICE.id,)
    assert granted.token is None
    assert bodies(script)[0]["subject"] == {"sub_ids": [{"id": ALICE.id, "format": "uri"}]}
    assert "access_token" not in bodies(script)[0]
    with pytest.raises(ValueError, match="no access token"):
        shop.outgoing_payments.spent(granted)


def test_the_ownership_of_another_wallet_is_not_believed() -> None:
    proved = {**WAITING, "subject": {"sub_ids": [{"id": SHOP, "format": "uri"}]}}
    script = Script(answer(200, PENDING), answer(200, proved))
    shop = client(script, timeout=60)
    with pytest.raises(errors.UntrustedAnswer):
        shop.grants.continue_(shop.grants.subject(ALICE, finish_uri=FINISH), "ref-1")


def test_a_grant_is_cancelled_before_and_after_its_approval() -> None:
    script = Script(answer(204), answer(204))
    shop = client(script)
    shop.grants.cancel(PendingGrant(ALICE, PAYING, "", CONTINUATION))
    shop.grants.cancel(Grant(ALICE, PAYING, TOKEN, continuation=CONTINUATION))
    assert [each.method for each in script.sent] == ["DELETE", "DELETE"]


def test_a_token_is_rotated_and_revoked() -> None:
    script = Script(answer(200, GRANTED), answer(204))
    shop = client(script)
    renewed = shop.tokens.rotate(GRANT)
    assert renewed.token != TOKEN
    shop.tokens.revoke(renewed)
    assert [(each.method, each.url) for each in script.sent] == [
        ("POST", "https://auth.wallet.example/token/1"),
        ("DELETE", "https://auth.wallet.example/token/2"),
    ]


def test_the_money_moves_once_and_is_found_again() -> None:
    quote = open_payments.Quote(QUOTE.id, QUOTE.debit, QUOTE.receive, None, RECEIVER)
    other = {**PAID, "id": f"{PAID['id']}0", "quoteId": f"{QUOTE.id}0"}
    page = {"result": [other, PAID], "pagination": {"hasNextPage": False}}
    none = {"result": [other], "pagination": {"hasNextPage": False}}
    script = Script(
        answer(201, {**PAID, "metadata": {"order": "42"}}),
        answer(200, page),
        answer(200, none),
        answer(200, PAID),
        answer(200, SPENT),
    )
    payments = client(script).outgoing_payments
    paid = payments.create(GRANT, quote, metadata={"order": "42"})
    assert payments.find(GRANT, quote) == paid
    assert payments.find(GRANT, quote) is None
    assert payments.get(GRANT, paid.id) == paid
    assert payments.spent(GRANT).debit == open_payments.Amount(400, "EUR", 2)
    assert bodies(script)[0] == {
        "walletAddress": ALICE.id,
        "quoteId": QUOTE.id,
        "metadata": {"order": "42"},
    }


def test_a_deadline_holds_for_all_calls_and_is_only_ever_lowered() -> None:
    script = Script(answer(200, TILLS_TOKEN), answer(200, INCOMING))
    script.takes = timedelta(seconds=3)
    client(script).within(5).within(60).incoming_payments.get(TILL, RECEIVER)
    assert script.timeouts == [5, 2]
    script = Script(answer(200, TILLS_TOKEN))
    script.takes = timedelta(seconds=5)
    with pytest.raises(errors.NotSent, match="no time left"):
        client(script).within(5).incoming_payments.get(TILL, RECEIVER)


def test_a_directed_client_sends_its_public_key_and_no_url() -> None:
    script = Script(answer(200, TILLS_TOKEN), answer(200, INCOMING))
    client(script, directed=True).incoming_payments.get(TILL, RECEIVER)
    assert bodies(script)[0]["client"] == {
        "jwk": {
            "kid": KEY.key_id,
            "alg": "EdDSA",
            "kty": "OKP",
            "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        }
    }


def test_the_object_form_of_the_client_can_go_first() -> None:
    wants_string = "Received error validating OpenAPI request: body.client must be string"
    refused = answer(400, {"error": {"description": wants_string}})
    script = Script(refused, answer(200, TILLS_TOKEN), answer(200, INCOMING), answer(200, PENDING))
    shop = client(script, object_first=True)
    shop.incoming_payments.get(TILL, RECEIVER)
    shop.grants.request(ALICE, PAYING)
    sent = [body["client"] for body in bodies(script) if body is not None]
    assert sent == [{"walletAddress": SHOP}, SHOP, {"walletAddress": SHOP}]


def test_a_key_is_generated_written_and_published() -> None:
    key = SigningKey.generate("k1", random=lambda size: bytes(range(size)))
    assert SigningKey.from_pem("k1", key.to_pem()) == key
    assert open_payments.jwks([key.jwk()]) == {
        "keys": [
            {
                "kid": "k1",
                "alg": "EdDSA",
                "kty": "OKP",
                "crv": "Ed25519",
                "x": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg",
            }
        ]
    }
    assert SigningKey.generate("k1") != SigningKey.generate("k1")
    assert "private" not in repr(key)


def test_requests_are_signed_with_the_clients_key() -> None:
    script = Script(answer(200, TILLS_TOKEN), answer(200, INCOMING))
    client(script).incoming_payments.get(TILL, RECEIVER)
    assert all(f'keyid="{KEY.key_id}"' in header(each, "signature-input") for each in script.sent)
