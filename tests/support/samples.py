"""Records with every field set, and free texts beyond ASCII."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from checkout.domain.ground.addresses import Address
from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.people import Invitation, Member, Passkey, Role
from checkout.domain.merchant.record import (
    ApiKey,
    Footer,
    Identity,
    Logo,
    Merchant,
    Ownership,
    ServiceKey,
    Suspension,
)
from checkout.domain.payment.attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import (
    Attention,
    IncomingPaymentRef,
    Instruction,
    Phase,
    Problem,
)
from checkout.domain.payment.machine import Change, HistoryEntry
from checkout.domain.refund.record import RefundRef
from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind
from checkout.domain.session.customer_details import Answer, CustomerDetails
from checkout.domain.session.note import Note
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.session.transitions import advance
from checkout.domain.session.withdrawal import Withdrawal
from checkout.domain.webhooks.record import (
    Delivery,
    Endpoint,
    EventStatus,
    Format,
    GivenUp,
    WebhookEvent,
    WebhookSecret,
)
from checkout.ports import Reservation
from open_payments.models import Amount, Quote, WalletAddress
from tests.support.basics import NOW, a_session

DAY = timedelta(days=1)
MS = timedelta(milliseconds=1)


def session_id(number: int) -> str:
    return f"cs_{number:022d}"


def full_session(**changes: Any) -> Session:
    """Return an impossible session: every field is set."""
    everything: dict[str, Any] = {
        "phase": Phase.PAYING,
        "lease_until": NOW + 1 * MS,
        "approve_until": NOW + 1 * MS,
        "look_at": NOW + 2 * MS,
        "check_at": NOW + 2 * MS,
        "checks": 3,
        "hung_until": NOW + 3 * MS,
        "customer": WalletAddress(
            "https://w.example/älice", "EUR", 9, "https://a.example", "https://r.example"
        ),
        "incoming_payment": IncomingPaymentRef("https://r.example/in/1", NOW + 4 * MS),
        "quote": Quote(
            "https://r.example/q/1", Amount(2**64 - 1, "EUR", 9), Amount(0, "JPY", 0), NOW + 5 * MS
        ),
        "interact_url": "https://a.example/interact?x=ü",
        "grant": "v1.00000000.Z3JhbnQ",
        "token": "v1.00000000.dG9rZW4",
        "instruction": Instruction("attempt-1", NOW + 6 * MS),
        "outgoing_payment": "https://r.example/out/1",
        "closing_at": NOW + 7 * MS,
        "closed_at": NOW + 8 * MS,
        "received": 2**64 - 1,
        "problem": Problem.PRICE_CHANGED,
        "attention": Attention.PARTIAL_PAYMENT,
        "completed_at": NOW + 9 * MS,
        "event": "evt_1",
        "identity": 1,
        "locale": "pt-BR",
        "client_reference_id": "Bestellung ü",
        "later_json": '{"of_tomorrow":["ü",1]}',
        "echo_json": '{"customer_email":"a@shop.example"}',
        "request_id": "req_0123456789abcdefABCDEF",
        "part": 31,
        "customer_details": "v1.00000000.ZGV0YWlscw",
        "customer_further": "v1.00000000.ZnVydGhlcg",
        "customer_mark": "0123456789abcdef0123456789abcdef",
        "customer_marks": ("123456789abcdef0123456789abcdef0",),
        "collect_json": '{"asked":["email"],"required":["email"]}',
        "details_at": NOW + 2 * MS,
        "link": "plink_0123456789abcdefABCDEF",
        "restocked_at": NOW,
        "submissions": (NOW, NOW + 10 * MS),
        "payment_attempts": (
            PaymentAttempt(1, NOW),
            PaymentAttempt(2, NOW + MS, typed="$w.example/älice 🫖", resolved_at=NOW + 11 * MS),
            PaymentAttempt(
                3,
                NOW + 12 * MS,
                typed="https://w.example/älice",
                resolved_at=NOW + 13 * MS,
                reported=Outcome.DECLINED,
                reported_at=NOW + 14 * MS,
                outcome=Outcome.PAID_IN_PART,
                ended_by=EndedBy.MERCHANT,
                ended_at=NOW + 15 * MS,
                problem="price_changed",
                detail="NotSent",
                wallet="https://w.example/älice",
                incoming_payment="https://r.example/in/1",
                quote=Quote(
                    "https://r.example/q/1", Amount(2**64, "EUR", 9), Amount(0, "JPY", 0), NOW
                ),
                outgoing_payment="https://r.example/out/1",
                prepared_at=NOW + 16 * MS,
                approved_at=NOW + 17 * MS,
                sent_at=NOW + 18 * MS,
                accepted_at=NOW + 19 * MS,
                received=2**64 - 1,
            ),
        ),
        "refunds": (RefundRef("re_1", 1999, 1), RefundRef("re_2", 0)),
        "history": (HistoryEntry(NOW, "prepared", "nötig 🫖"), HistoryEntry(NOW + MS, "checked")),
        "line_items": (
            LineItem("usd", 'Tee 🫖 \u0000\u2028"\\', "鮮やか", 0, 1_000_000),
            LineItem("usd", "Tea", None, 999_999_999_999, 1),
            LineItem("usd", "Tea", "", 1, 1),
        ),
        "metadata_json": '{"a":1,"b":true,"c":1.50,"ü":"🫖","a2":null}',
    }
    return a_session(Status.AWAITING_APPROVAL, **{**everything, **changes})


def a_reservation(writer: str = "first", **changes: Any) -> Reservation:
    fields: dict[str, Any] = {
        "key": "ab" * 32,
        "fingerprint": "cd" * 32,
        "status": 201,
        "body": '{"id":"cs_1","name":"Tee 🫖"}',
        "writer": writer,
        "created_at": NOW,
        "expires_at": NOW + DAY,
    }
    return Reservation(**{**fields, **changes})


def an_event(**changes: Any) -> WebhookEvent:
    fields: dict[str, Any] = {
        "id": "evt_1",
        "merchant": "mer_1",
        "subject": session_id(1),
        "type": "checkout.session.canceled",
        "body": '{"metadata":{"ü":"🫖"}}',
        "stripe_body": '{"object":"event","ü":"🫖"}',
        "created_at": NOW,
        "next_at": NOW,
    }
    return WebhookEvent(**{**fields, **changes})


def full_event(**changes: Any) -> WebhookEvent:
    """Return an impossible event: every field is set."""
    everything: dict[str, Any] = {
        "next_at": NOW + 1 * MS,
        "status": EventStatus.EXHAUSTED,
        "version": 7,
        "attempts": 3,
        "deliveries": (
            Delivery(NOW + 2 * MS),
            Delivery(NOW + 3 * MS, 10_000, None, "no answer: shop.example: out of time", None),
            Delivery(NOW + 4 * MS, 0, 500, None, 'Käse "\\ \ufffd\u2028 🫖\n'),
            Delivery(NOW + 5 * MS, 12, 204, None, ""),
        ),
        "ended_at": NOW + 6 * MS,
        "given_up": GivenUp.GONE,
        "details_of": session_id(1),
        "writer": "w1",
        "part": 3,
        "endpoint": "we_1",
    }
    return an_event(**{**everything, **changes})


def an_endpoint(**changes: Any) -> Endpoint:
    """Return an endpoint, with the first one's id unless another is given."""
    fields: dict[str, Any] = {"id": "we_first", "created_at": NOW - 365 * DAY}
    return Endpoint(**{**fields, **changes})


def a_merchant(**changes: Any) -> Merchant:
    fields: dict[str, Any] = {
        "id": "mer_1",
        "name": "Käfer & Söhne",
        "wallet_address": "https://w.example/shop",
        "key_id": "key-1",
        "private_key": "v1.00000000.c2VjcmV0",
        "details_key": "v1.00000000.a2V5",
        "asset_code": "USD",
        "asset_scale": 2,
        "auth_server": "https://a.example",
        "resource_server": "https://r.example",
        "created_at": NOW,
    }
    return Merchant(**{**fields, **changes})


def full_merchant(**changes: Any) -> Merchant:
    """Return a merchant that has set everything."""
    everything: dict[str, Any] = {
        "version": 5,
        "endpoint": an_endpoint(
            url="https://shop.example/hooks?a=%C3%BC",
            events=("checkout.session.expired", "checkout.session.canceled"),
            secrets=(
                WebhookSecret(sealed="v1.00000000.bmV3", created_at=NOW),
                WebhookSecret(sealed="v1.00000000.b2xk", created_at=NOW - MS, expires_at=NOW + MS),
            ),
            disabled_at=NOW + 2 * MS,
            format=Format.STRIPE,
            id="we_1",
            created_at=NOW,
            description="für die Kasse",
            metadata_json='{"a":"1"}',
            asked=("checkout.session.expired", "charge.refunded"),
            api_version="2025-03-31.basil",
            set_by="key_1",
            set_at=NOW + 3 * MS,
            withheld=1,
        ),
        "details_key_kms": "a21z",
        "further_endpoints": (an_endpoint(url="https://books.example/", id="we_2"),),
        "logo": Logo("image/png", bytes(range(256))),
        "accent_color": "#0a7f5c",
        "locale": "pt-BR",
        "return_hosts": ("shop.example", "xn--kfer-soa.example"),
        "tolerance": 5,
        "withdrawal_days": 14,
        "contact": "help@shop.example",
        "website": "shop.example",
        "footer": Footer(company="Käfer GmbH", terms="https://shop.example/terms"),
        "parts": 4,
        "providers": (
            Provider(
                "Cedar", "https://wallet.example/{name}", "https://wallet.example/", "DE KE", "Lg=="
            ),
        ),
        "key_sign_in_off_at": NOW + 5 * MS,
        "suspended": Suspension.ALONE,
        "wallet_name": "Käfers Kasse",
        "ownership": Ownership.UNPROVEN,
        "client": "https://pay.example/clients/mer_1",
        "service_keys": (
            ServiceKey(key_id="kid-1", x="eA", private_key="v1.00000000.aw", signs_from=NOW),
        ),
        "identity": 1,
        "former": (
            Identity(
                number=0,
                client=None,
                wallet_address="https://wallet.example/old",
                key_id="kid-0",
                private_key="v1.00000000.bw",
                auth_server="https://auth.example",
                resource_server="https://wallet.example",
            ),
        ),
    }
    return a_merchant(**{**everything, **changes})


def a_key(**changes: Any) -> ApiKey:
    fields: dict[str, Any] = {
        "id": "key_1",
        "hash": "ef" * 32,
        "merchant": "mer_1",
        "name": "Läden",
        "last_four": "wxyz",
        "asset_code": "USD",
        "asset_scale": 2,
        "created_at": NOW,
    }
    return ApiKey(**{**fields, **changes})


def cancel(session: Session, writer: str = "canceler") -> Change[Session]:
    return advance(session, Event.CANCEL_REQUESTED, now=NOW, writer=writer)


def paying(**changes: Any) -> Session:
    """Awaiting, with the intent to pay written (W6)."""
    fields: dict[str, Any] = {
        "phase": Phase.PAYING,
        "instruction": Instruction("attempt-1", NOW + 30 * 1000 * MS),
        "check_at": NOW + 5 * 1000 * MS,
        "token": "v1.00000000.dG9rZW4",
    }
    return a_session(Status.AWAITING_APPROVAL, **{**fields, **changes})


def payment_created(session: Session, writer: str = "payer") -> Change[Session]:
    return advance(
        session,
        Event.PAYMENT_CREATED,
        now=NOW,
        writer=writer,
        outgoing_payment="https://r.example/out/1",
        check_at=NOW + 9 * 1000 * MS,
    )


def checked(session: Session, writer: str = "sweeper") -> Change[Session]:
    """A sweep that found nothing new, and looks again later."""
    later = NOW + 60 * 1000 * MS
    return advance(
        session, Event.CHECKED, now=NOW, writer=writer, checks=session.checks + 1, check_at=later
    )


def a_member(**changes: Any) -> Member:
    fields: dict[str, Any] = {
        "id": "mbr_0123456789abcdefABCDEF",
        "merchant": "mer_1",
        "name": "Ada Ñandú",
        "role": Role.OWNER,
        "passkey": Passkey(id="YWJj", public_key=bytes(range(256)), sign_count=7),
        "asset_code": "USD",
        "asset_scale": 2,
        "invited_by": "key_1",
        "created_at": NOW,
    }
    return Member(**{**fields, **changes})


def an_invitation(**changes: Any) -> Invitation:
    fields: dict[str, Any] = {
        "id": "inv_0123456789abcdefABCDEF",
        "hash": "cd" * 32,
        "merchant": "mer_1",
        "member": "mbr_0123456789abcdefABCDEF",
        "name": "Ada Ñandú",
        "role": Role.OWNER,
        "invited_by": "key_1",
        "created_at": NOW,
        "expires_at": NOW + 9 * MS,
    }
    return Invitation(**{**fields, **changes})


def a_note(**changes: Any) -> Note:
    fields: dict[str, Any] = {
        "session": "cs_0123456789abcdefABCDEF",
        "merchant": "mer_1",
        "text": "Phoned: will call back",
        "tags": ("vip", "große Kundin"),
        "dealt_with": None,
        "author": "Ada",
        "at": NOW,
    }
    return Note(**{**fields, **changes})


def a_withdrawal(**changes: Any) -> Withdrawal:
    fields: dict[str, Any] = {
        "session": "cs_0123456789abcdefABCDEF",
        "merchant": "mer_1",
        "at": NOW,
        "said": "SEALED",
    }
    return Withdrawal(**{**fields, **changes})


QUESTIONS: Final = (
    Question("size", "Size", QuestionKind.DROPDOWN, options=(("s", "Small"), ("l", "Large"))),
    Question("text1", "Engraving", QuestionKind.TEXT, required=False, least=2, most=3),
    Question("member", "Your number", QuestionKind.NUMERIC),
)


EVERYTHING: Final = Collect(
    asked=frozenset({*Detail, *Place}),
    required=frozenset({*Detail, *Place}),
    ships_to=("DE", "AT"),
    questions=QUESTIONS,
)


GIVEN: Final = CustomerDetails(
    email="ana@example.com",
    name="Eva Beispiel",
    phone="+49 30 1234567",
    shipping=Address("DE", "Eva Beispiel", "Am Weg 1", "2. Stock", None, "Berlin", None, "10115"),
    billing=Address("US", "Ana Muster", "1 Main St", None, None, "Springfield", "IL", "62701"),
    answers=(
        Answer("size", "Size", QuestionKind.DROPDOWN, "l", "Large"),
        Answer("member", "Your number", QuestionKind.NUMERIC, "0042", "0042"),
    ),
)


ALICE = WalletAddress("https://w.example/alice", "EUR", 2, "https://a.example", "https://r.example")

PAID: dict[str, Any] = {
    "status": Status.COMPLETED,
    "received": 2000,
    "customer": ALICE,
    "outgoing_payment": "https://r.example/out/1",
    "quote": Quote("https://r.example/q/1", Amount(1854, "EUR", 2), Amount(2000, "USD", 2), NOW),
}
# More than the item of a session takes.
LARGE_CART = tuple(LineItem("usd", f"Tea {n}", f"A tin of {n} g", 100 + n, n) for n in range(1, 9))
