"""Test what the client asks for, and which answers it does not believe."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from client_calls import (
    ASKED,
    CALLS,
    DOCUMENT,
    FOREIGN_URL,
    GRANTED,
    INCOMING,
    KEY,
    LIMITS,
    PAGE,
    PENDING,
    QUOTE,
    RECEIVER,
    RESOURCES,
)
from client_script import (
    ALICE,
    CONTINUATION,
    SHOP,
    START,
    TOKEN,
    Script,
    answer,
    header,
    identity,
    money,
)

from open_payments.errors import NotSent, Reason, Refused, UntrustedAnswer
from open_payments.interaction import Interval, Limits
from open_payments.models import AccessToken, Amount, Continuation
from open_payments.protocol import Access

EVIL = "https://evil.example"


def _changed(body: Any, path: str, value: object) -> Any:
    """A copy of `body` with the member at `path` replaced, or dropped where `value` is ..."""
    copy = json.loads(json.dumps(body))
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    inner = copy
    for parent in parents:
        inner = inner[parent]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return copy


def _ask(call: str, path: str | None = None, value: object = None, **options: Any) -> Any:
    status, body, make = CALLS[call]
    body = body if path is None else _changed(body, path, value)
    return make(Script(answer(status, body)).client(**options))


@pytest.mark.parametrize("call", CALLS)
def test_an_answer_that_fits_its_question_is_believed(call: str) -> None:
    assert _ask(call) is not None


# By call and member: values that the answer must not have there.
UNTRUSTED: dict[tuple[str, str], list[object]] = {
    # Types and ranges
    ("document", "assetScale"): ["2", True, 2.0, -1, 256],
    ("document", "assetCode"): ["", 7, "E" * 65, ...],
    ("document", "id"): [f"{ALICE.id} b", f"{ALICE.id}?a=b", "http://wallet.example/alice"],
    ("document", "authServer"): ["http://auth.wallet.example", "https://user@auth.wallet.example"],
    ("document", "resourceServer"): ["https://wallet.example/?tenant", ...],
    ("keys", "keys"): [{}],
    ("keys", "keys.0"): ["key"],
    ("keys", "keys.0.kid"): [7, "k" * 2049],
    ("keys", "keys.0.x"): [7, "x" * 65],
    ("read", "receivedAmount"): [...],
    ("read", "receivedAmount.value"): [
        *(100, "1.5", "-1", "+1", " 1", "1\n", "٣", "1_0", "", str(2**64), "0" * 21)
    ],
    ("read", "completed"): ["false", ...],
    ("read", "expiresAt"): [
        *("2026-11-20T12:00:00", "tomorrow", 1795177908, "0001-01-01T00:00:00+14:00")
    ],
    ("paid", "failed"): ["false"],
    # Grants
    ("grant", "access_token"): [...],
    ("grant", "access_token.value"): ["", "a b", "a\r\nX: y", "a" * 4097],
    ("grant", "access_token.manage"): [
        f"{EVIL}/token/2",
        "http://auth.wallet.example/token/2",
        "https://auth.wallet.example:444/token/2",
    ],
    ("grant", "access_token.expires_in"): [-1, True, "600", 1e300, float("inf")],
    ("continued", "access_token"): [...],
    ("continued", "access_token.manage"): [f"{EVIL}/token/2"],
    ("rotated", "access_token.manage"): [f"{EVIL}/token/2"],
    ("pending", "interact"): [...],
    ("pending", "interact.finish"): [..., "a\nb"],
    ("pending", "interact.redirect"): [
        "http://auth.wallet.example/interact/1",
        "http://localhost/interact/1",
        "javascript:alert(1)",
        "//auth.wallet.example/interact/1",
        "https://a.example/\r\nX: y",
        "https://a.example/<script>",
    ],
    ("pending", "continue"): [...],
    ("pending", "continue.uri"): [f"{EVIL}/continue/1"],
    ("pending", "continue.access_token"): [...],
    ("pending", "continue.wait"): [-1, "5"],
    # Echoes
    ("incoming", "walletAddress"): ["https://shop.example/other"],
    ("incoming", "incomingAmount"): [...],
    ("incoming", "incomingAmount.value"): ["2499"],
    ("incoming", "id"): [f"{EVIL}/incoming-payments/1", RECEIVER.replace("https", "http")],
    ("incoming", "receivedAmount.value"): ["1"],
    ("incoming", "receivedAmount.assetCode"): ["EUR"],
    ("incoming", "receivedAmount.assetScale"): [3],
    ("incoming", "completed"): [True],
    ("read", "id"): [f"{RECEIVER}0"],
    ("read", "walletAddress"): ["https://shop.example/other"],
    ("read", "receivedAmount.assetScale"): [0],
    ("completed", "id"): [f"{RECEIVER}0"],
    ("quote", "walletAddress"): ["https://wallet.example/bob"],
    ("quote", "receiver"): [f"{RECEIVER}0"],
    ("quote", "id"): [f"{EVIL}/quotes/9"],
    ("quote", "receiveAmount.value"): ["2499"],
    ("quote", "receiveAmount.assetCode"): ["EUR"],
    ("quote", "receiveAmount.assetScale"): [3],
    ("quote", "debitAmount.assetCode"): ["USD"],
    ("quote", "debitAmount.assetScale"): [3],
    ("fixed", "debitAmount.value"): ["2441", "2443"],
    ("fixed", "debitAmount.assetCode"): ["USD"],
    ("fixed", "receiver"): [f"{RECEIVER}0"],
    ("foreign", "walletAddress"): [SHOP],
    ("foreign", "incomingAmount"): [money(2500)],
    ("foreign", "id"): [RECEIVER],
    ("foreign", "receivedAmount.value"): ["1"],
    ("foreign read", "walletAddress"): [SHOP],
    ("foreign read", "id"): [f"{FOREIGN_URL}0"],
    ("foreign completed", "walletAddress"): [SHOP],
    ("spent", "spentDebitAmount"): [7, "400"],
    ("spent", "spentDebitAmount.value"): [400, "-1"],
    ("spent", "spentDebitAmount.assetCode"): ["USD"],
    ("spent", "spentDebitAmount.assetScale"): [3],
    ("spent", "spentReceiveAmount.value"): ["4.1"],
    ("payment", "walletAddress"): ["https://wallet.example/bob"],
    ("payment", "quoteId"): [f"{QUOTE.id}0"],
    ("payment", "receiver"): [f"{RECEIVER}0"],
    ("payment", "debitAmount.value"): ["2443"],
    ("payment", "sentAmount.assetCode"): ["USD"],
    ("payment", "id"): [f"{EVIL}/outgoing-payments/9"],
    ("paid", "id"): ["https://wallet.example/tenant/outgoing-payments/8"],
    ("page", "result"): [{}],
    ("page", "result.0.walletAddress"): ["https://wallet.example/bob"],
    ("page", "result.0.id"): [f"{EVIL}/outgoing-payments/9"],
    ("page", "pagination"): [...],
    ("page", "pagination.hasNextPage"): [1, True],
}


@pytest.mark.parametrize(
    ("call", "path", "value"),
    [(*where, value) for where, values in UNTRUSTED.items() for value in values],
)
def test_an_answer_that_contradicts_its_question_is_not_believed(
    call: str, path: str, value: object
) -> None:
    with pytest.raises(UntrustedAnswer):
        _ask(call, path, value)


def test_a_complaint_names_the_member_and_quotes_nothing() -> None:
    with pytest.raises(UntrustedAnswer) as caught:
        _ask("grant", "access_token.value", "se cret")
    assert str(caught.value) == "request_grant: answer.access_token.value is not a usable token"


# Members that servers may leave out or write in their own way.


@pytest.mark.parametrize("value", [..., None, ""])
def test_a_wallet_without_a_public_name_has_none(value: object) -> None:
    assert _ask("document", "publicName", value).public_name is None


def test_keys_of_other_kinds_may_stand_beside_ours() -> None:
    others = [
        {"kty": "RSA", "crv": "-"},
        {"kty": "OKP", "crv": "X25519", "kid": "x", "x": "y"},
        {"kty": "OKP", "kid": "x", "x": "y"},
        {"kty": "OKP", "crv": "Ed25519", "x": "y"},
    ]
    [key] = _ask("keys", "keys", [*others, KEY])
    assert (key.kid, key.x) == ("k", "11qY")


def test_times_are_read_with_any_offset_and_may_be_absent() -> None:
    moment = _ask("quote", "expiresAt", "2026-11-20T13:05:00+01:00").expires_at
    assert moment == START + timedelta(minutes=5)
    assert moment.utcoffset() == timedelta()
    assert _ask("quote", "expiresAt", ...).expires_at is None


def test_amounts_are_whole_unsigned_64_bit_numbers() -> None:
    assert _ask("read", "receivedAmount.value", str(2**64 - 1)).received.value == 2**64 - 1
    body = _changed(INCOMING, "incomingAmount.assetScale", 255)
    script = Script(answer(200, _changed(body, "receivedAmount.assetScale", 255)))
    assert CALLS["read"][2](script.client()).received.asset_scale == 255


def test_an_incoming_payment_may_be_open_to_any_amount_when_read() -> None:
    assert _ask("read", "incomingAmount", ...).incoming_amount is None


def test_a_quote_may_deliver_more_than_the_merchant_is_owed() -> None:
    assert _ask("quote", "receiveAmount.value", "2501").receive.value == 2501


def test_a_fixed_debit_may_deliver_what_it_can() -> None:
    assert _ask("fixed", "receiveAmount", money(2177, "USD")).receive.value == 2177


def test_nothing_is_spent_before_the_first_payment() -> None:
    spent = _ask("spent")
    assert (spent.debit, spent.receive) == (Amount(400, "EUR", 2), Amount(410, "USD", 2))
    for value in (None, ...):
        assert _ask("spent", "spentDebitAmount", value).debit is None
        assert _ask("spent", "spentReceiveAmount", value).receive is None


def test_a_payment_may_leave_out_its_quote_and_its_failure() -> None:
    assert _ask("payment", "quoteId", ...).quote_id is None
    assert _ask("paid", "failed", ...).failed is False
    assert _ask("paid", "failed", True).failed is True


@pytest.mark.parametrize(("expires_in", "seconds"), [(600, 600), (1.9, 1), (0, 0), (..., None)])
def test_a_token_may_expire_counted_from_before_it_was_asked_for(
    expires_in: object, seconds: int | None
) -> None:
    script = Script(answer(200, _changed(GRANTED, "access_token.expires_in", expires_in)))
    script.takes = timedelta(seconds=7)
    token = script.client().request_grant(ALICE.auth_server, Access.QUOTE)
    expected = None if seconds is None else START + timedelta(seconds=seconds)
    assert token.expires_at == expected


@pytest.mark.parametrize(
    ("wait", "seconds"), [(..., 5), (None, 5), (0, 0), (1, 1), (0.2, 1), (30, 30)]
)
def test_trap_05_a_grant_is_not_to_be_continued_before_the_servers_wait_is_over(
    wait: object, seconds: int
) -> None:
    script = Script(answer(200, _changed(PENDING, "continue.wait", wait)))
    script.takes = timedelta(seconds=3)
    pending = CALLS["pending"][2](script.client())
    assert pending.continuation.not_before == START + timedelta(seconds=3 + seconds)


# Discovery


def test_a_document_served_elsewhere_counts_as_the_server_of_its_id_confirms_it() -> None:
    script = Script(
        answer(200, DOCUMENT | {"authServer": "https://evil.example"}), answer(200, DOCUMENT)
    )
    assert script.client().get_wallet_address("https://alice.example/") == ALICE
    assert [request.url for request in script.sent] == ["https://alice.example/", ALICE.id]
    same = (
        Script(answer(200, DOCUMENT)).client().get_wallet_address("https://wallet.example/Alice/")
    )
    assert same.id == ALICE.id


def test_a_document_that_the_server_of_its_id_does_not_confirm_is_not_believed() -> None:
    script = Script(answer(200, DOCUMENT), answer(200, DOCUMENT | {"id": "https://x.example/bob"}))
    with pytest.raises(UntrustedAnswer, match="does not confirm"):
        script.client().get_wallet_address("https://alice.example/")


def test_public_documents_are_read_unsigned_and_need_no_identity() -> None:
    script = Script(answer(200, DOCUMENT), answer(200, CALLS["keys"][1]))
    client = script.client(identity=None)
    client.get_wallet_address(ALICE.id)
    client.get_jwks(ALICE.id)
    headers = [dict(request.headers) for request in script.sent]
    assert headers == [{"Accept": "application/json"}] * 2
    assert script.sent[1].url == f"{ALICE.id}/jwks.json"


def test_a_client_without_identity_says_so_where_it_must_sign() -> None:
    with pytest.raises(ValueError, match="no identity"):
        Script().client(identity=None).request_grant(ALICE.auth_server, Access.QUOTE)


# Grants


def _sent_by(call: str) -> Any:
    status, body, make = CALLS[call]
    script = Script(answer(status, body))
    make(script.client())
    content = script.sent[0].body
    return None if content is None else json.loads(content)


def test_a_payment_grant_is_limited_to_one_receiver_and_amount() -> None:
    access = {
        "type": "outgoing-payment",
        "actions": ["create", "read", "list"],
        "identifier": ALICE.id,
        "limits": {"receiver": RECEIVER, "debitAmount": money(2442)},
    }
    finish = {"method": "redirect", "uri": "https://pay.example/cb", "nonce": "n"}
    assert _sent_by("pending") == {
        "access_token": {"access": [access]},
        "interact": {"start": ["redirect"], "finish": finish},
        "client": SHOP,
    }


YEARLY = Interval(datetime(2026, 12, 1, tzinfo=UTC), months=12)
BUDGET = Limits(debit_amount=Amount(10000, "EUR", 2), interval=YEARLY)
GRANTED_BUDGET = {
    "type": "outgoing-payment",
    "actions": ["create", "read", "list"],
    "identifier": ALICE.id,
    "limits": {"debitAmount": money(10000), "interval": "R/2026-12-01T00:00:00Z/P12M"},
}


def _asked_for(limits: Limits) -> Any:
    script = Script(answer(200, PENDING))
    script.client().request_payment_grant(
        ALICE, limits=limits, finish_uri="https://pay.example/cb", nonce="n"
    )
    return json.loads(script.sent[0].body or b"")["access_token"]["access"]


def test_a_grant_may_be_limited_by_the_period_and_by_what_arrives() -> None:
    assert _asked_for(BUDGET) == [GRANTED_BUDGET]
    weekly = Interval(datetime(2026, 11, 30, 1, tzinfo=timezone(timedelta(hours=1))), days=7)
    [access] = _asked_for(Limits(receive_amount=ASKED, interval=weekly))
    assert access["limits"] == {
        "receiveAmount": money(2500, "USD"),
        "interval": "R/2026-11-30T00:00:00Z/P7D",
    }


def test_a_debit_limit_of_another_asset_is_not_sent() -> None:
    script = Script()
    for other in (Amount(1, "USD", 2), Amount(1, "EUR", 3)):
        with pytest.raises(NotSent, match="another asset"):
            script.client().request_payment_grant(
                ALICE, limits=Limits(debit_amount=other), finish_uri="https://a.example", nonce="n"
            )
    assert not script.sent


def _redeemed(limits: Limits, *access: object) -> AccessToken:
    body = _changed(GRANTED, "access_token.access", list(access))
    script = Script(answer(200, body))
    return script.client().continue_grant(ALICE, CONTINUATION, interact_ref="r", limits=limits)


@pytest.mark.parametrize("left_out", [..., "limits", "limits.interval", "limits.debitAmount"])
def test_a_budget_that_was_granted_as_asked_is_believed(left_out: Any) -> None:
    access = GRANTED_BUDGET if left_out is ... else _changed(GRANTED_BUDGET, left_out, ...)
    assert _redeemed(BUDGET, access).value == "2E6F040D518B6F1A0883"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("type", "incoming-payment"),
        ("identifier", "https://wallet.example/bob"),
        ("limits.interval", "R/2026-12-01T00:00:00Z/P1M"),
        ("limits.interval", "P12M"),
        ("limits.debitAmount", money(10001)),
        ("limits.debitAmount", money(10000, "USD")),
        ("limits.receiveAmount", money(10000)),
        ("limits.receiver", RECEIVER),
    ],
)
def test_a_budget_that_was_granted_otherwise_is_not_believed(path: str, value: object) -> None:
    with pytest.raises(UntrustedAnswer):
        _redeemed(BUDGET, _changed(GRANTED_BUDGET, path, value))


def test_a_grant_without_a_period_is_not_believed_with_one() -> None:
    whole = Limits(debit_amount=BUDGET.debit_amount)
    with pytest.raises(UntrustedAnswer, match="interval"):
        _redeemed(whole, GRANTED_BUDGET)


def test_a_grant_for_incoming_payments_names_a_foreign_wallet_where_one_is_given() -> None:
    script = Script(answer(418))
    with pytest.raises(Refused):
        script.client().request_grant(ALICE.auth_server, Access.INCOMING_PAYMENT, wallet=ALICE.id)
    [access] = json.loads(script.sent[0].body or b"")["access_token"]["access"]
    assert access["identifier"] == ALICE.id


def test_a_grant_for_incoming_payments_names_the_merchants_own_wallet() -> None:
    script = Script(answer(418))
    with pytest.raises(Refused):
        script.client().request_grant(ALICE.auth_server, Access.INCOMING_PAYMENT)
    actions = ["create", "read", "complete"]
    access = {"type": "incoming-payment", "actions": actions, "identifier": SHOP}
    sent = json.loads(script.sent[0].body or b"")
    assert sent == {"access_token": {"access": [access]}, "client": SHOP}
    assert "Authorization" not in script.sent[0].headers


def test_a_wallet_that_wants_an_interaction_where_nobody_can_interact_is_refused() -> None:
    with pytest.raises(Refused, match="interaction for quote") as caught:
        CALLS["grant"][2](Script(answer(200, PENDING)).client())
    assert caught.value.reason is Reason.INTERACTION_REQUIRED


def test_an_approval_without_a_customer_is_not_believed() -> None:
    with pytest.raises(UntrustedAnswer):
        CALLS["pending"][2](Script(answer(200, GRANTED)).client())


@pytest.mark.parametrize("host", ["localhost:4100", "127.0.0.1", "wallet.localhost"])
def test_development_may_interact_on_this_machine_without_tls(host: str) -> None:
    url = f"http://{host}/interact/1"
    found = _ask("pending", "interact.redirect", url, allow_http_interaction=True)
    assert found.interact_url == url


@pytest.mark.parametrize("url", ["http://wallet.example/i", "ftp://localhost/i"])
def test_development_does_not_leave_this_machine_without_tls(url: str) -> None:
    with pytest.raises(UntrustedAnswer):
        _ask("pending", "interact.redirect", url, allow_http_interaction=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "10.0.0.1", "0x7f.1", "1.1.1.1"])
def test_no_customer_is_led_to_an_address(host: str) -> None:
    with pytest.raises(UntrustedAnswer):
        _ask("pending", "interact.redirect", f"https://{host}/interact/1")


def test_an_interaction_url_may_have_a_fragment() -> None:
    url = "https://wallet.example/app?a=b#/consent/1?c=d"
    assert _ask("pending", "interact.redirect", url).interact_url == url


@pytest.mark.parametrize(
    "uri",
    [
        f"{EVIL}/continue/1",
        "http://auth.wallet.example/continue/1",
        "https://auth.wallet.example:8443/continue/1",
        "https://auth.wallet.example@evil.example/continue/1",
        "",
    ],
)
def test_a_token_goes_back_only_to_the_server_that_it_came_from(uri: str) -> None:
    script = Script()
    client = script.client()
    stray = Continuation(uri, "token", START)
    token = type(TOKEN)("token", uri)
    with pytest.raises(UntrustedAnswer, match="continue_grant"):
        client.continue_grant(ALICE, stray, interact_ref="r", limits=LIMITS)
    with pytest.raises(UntrustedAnswer, match="cancel_grant"):
        client.cancel_grant(ALICE.auth_server, stray)
    with pytest.raises(UntrustedAnswer, match="rotate_token"):
        client.rotate_token(ALICE.auth_server, token)
    with pytest.raises(UntrustedAnswer, match="revoke_token"):
        client.revoke_token(ALICE.auth_server, token)
    assert not script.sent


def test_trap_06_a_continuation_is_sent_once_even_if_its_answer_is_useless() -> None:
    script = Script(answer(200, "cut o"))
    with pytest.raises(UntrustedAnswer):
        CALLS["continued"][2](script.client())
    assert len(script.sent) == 1


def test_cancelling_and_revoking_expect_an_empty_answer() -> None:
    script = Script(answer(204), answer(204), answer(200, {}))
    client = script.client()
    client.cancel_grant(ALICE.auth_server, CONTINUATION)
    client.revoke_token(ALICE.auth_server, TOKEN)
    assert [(r.method, header(r, "Authorization")) for r in script.sent] == [
        ("DELETE", f"GNAP {CONTINUATION.token}"),
        ("DELETE", f"GNAP {TOKEN.value}"),
    ]
    with pytest.raises(UntrustedAnswer):
        client.revoke_token(ALICE.auth_server, TOKEN)


# Payments


def test_an_incoming_payment_carries_no_word_about_the_order() -> None:
    assert _sent_by("incoming") == {
        "walletAddress": SHOP,
        "incomingAmount": money(2500, "USD"),
        "expiresAt": "2026-11-20T13:00:00.000Z",
    }


def test_an_incoming_payment_at_a_foreign_wallet_may_be_open_to_any_amount() -> None:
    assert _sent_by("foreign") == {
        "walletAddress": ALICE.id,
        "expiresAt": "2026-11-20T13:00:00.000Z",
    }


def test_a_quote_names_the_debit_that_is_fixed_and_no_other_amount() -> None:
    quote = {"walletAddress": ALICE.id, "receiver": RECEIVER, "method": "ilp"}
    assert _sent_by("quote") == quote
    assert _sent_by("fixed") == quote | {"debitAmount": money(2442)}


def test_an_expiry_is_sent_in_utc_with_milliseconds() -> None:
    script = Script(answer(418))
    moment = datetime(2026, 1, 1, 1, 0, 0, 123456, tzinfo=timezone(timedelta(hours=1)))
    with pytest.raises(Refused):
        script.client().create_incoming_payment(RESOURCES, TOKEN, amount=ASKED, expires_at=moment)
    assert json.loads(script.sent[0].body or b"")["expiresAt"] == "2026-01-01T00:00:00.123Z"


def test_trap_07_the_payment_of_a_quote_is_looked_up_under_the_quotes_own_id() -> None:
    url = Script().client().outgoing_payment_url(ALICE, QUOTE.id)
    assert url == "https://wallet.example/tenant/outgoing-payments/9"


def test_trap_09_completed_is_reported_apart_from_what_was_received() -> None:
    closed = _ask("completed", "completed", True)
    assert (closed.completed, closed.received.value) == (True, 0)
    assert _ask("paid", "sentAmount.value", "0").sent.value == 0


def test_a_list_is_paged_by_its_cursor() -> None:
    more = {"hasNextPage": True, "endCursor": "c/1"}
    script = Script(answer(200, PAGE | {"pagination": more}), answer(200, PAGE))
    client = script.client()
    page, cursor = client.list_outgoing_payments(ALICE, TOKEN, first=10)
    assert ([payment.quote_id for payment in page], cursor) == ([QUOTE.id], "c/1")
    assert client.list_outgoing_payments(ALICE, TOKEN, first=10, cursor=cursor)[1] is None
    assert [request.url.partition("?")[2] for request in script.sent] == [
        "first=10&wallet-address=https%3A%2F%2Fwallet.example%2Falice",
        "cursor=c%2F1&first=10&wallet-address=https%3A%2F%2Fwallet.example%2Falice",
    ]


def test_a_list_that_leads_in_a_circle_is_not_followed() -> None:
    more = {"hasNextPage": True, "endCursor": "c"}
    with pytest.raises(UntrustedAnswer, match="same page"):
        Script(answer(200, PAGE | {"pagination": more})).client().list_outgoing_payments(
            ALICE, TOKEN, cursor="c"
        )


def test_no_secret_shows_in_the_repr_of_what_a_grant_gave() -> None:
    for found in (_ask("grant"), _ask("pending"), _ask("pending").continuation, identity()):
        for secret in ("2E6F040D", "33OMUKMK", "9E184C09", "continue/1", "token/2"):
            assert secret not in repr(found)
