"""Notices by e-mail, from what happens to what a mail program reads: each once, to the right
people, in their language, and none after it was solved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Any

import pytest

from checkout.adapters.dynamo.people import DynamoPeople, subscriber_from
from checkout.adapters.dynamo.records import flag_item, session_item
from checkout.domain.ground.errors import (
    Conflict,
    EmailInvalid,
    ParameterInvalid,
    RateLimited,
)
from checkout.domain.ground.ids import new_key_id, new_member_id, subscriber_id
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.merchant.notices import Pace, Subscriber, Topic
from checkout.domain.merchant.people import Member, Passkey, Role
from checkout.domain.payment.in_flight import Attention
from checkout.domain.payment.mandate import MandateStatus
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.event_types import EXPIRED
from checkout.domain.webhooks.record import Delivery
from checkout.flows import notices
from checkout.flows.notices import Case
from checkout.flows.schedule import sweep
from expirer.app import scheduled
from pay.emails import notice_email
from tests.flows.deadly import Killed
from tests.support import services
from tests.support.basics import a_mandate
from tests.support.flows import HARBOR, PREFIX, World
from tests.support.mailbox import SENDER, Mailbox, text_of
from tests.support.samples import a_key, a_note, an_endpoint, an_event
from tests.support.services import put_key

TO = "ada@shop.example"
HERE = "192.0.2.1"
MINUTE = timedelta(minutes=1)


class Shop(World):
    """A world whose sweep sends notices to a mailbox."""

    def __init__(self) -> None:
        super().__init__()
        self.box = Mailbox()
        self.services = replace(self.services, mail=self.box.mail(), write_notice=notice_email)
        self.desk = replace(self.endpoints, mail=self.box.mail())

    def member(self, name: str = "Ada", role: Role = Role.OWNER, **fields: Any) -> Member:
        member = Member(
            id=new_member_id(self.services.random_bytes),
            name=name,
            role=role,
            passkey=Passkey(id=name, public_key=b"", sign_count=0),
            invited_by="operator",
            created_at=self.clock.now(),
            **{
                "merchant": self.merchant.id,
                "asset_code": "USD",
                "asset_scale": 2,
                **fields,
            },
        )
        self.dynamo.put_item(
            TableName=f"{PREFIX}-api_keys",
            Item=DynamoPeople(self.dynamo, PREFIX)._member_item(member),
        )
        return member

    def asks(self, member: Member, address: str = TO, **choice: Any) -> str | None:
        usual = {"topics": tuple(Topic), "pace": Pace.AT_ONCE, "language": "en", "client": HERE}
        chosen = {**usual, **choice}
        return notices.choose(self.desk, member, address=address, **chosen)[1]

    def told(self, member: Member | None = None, **choice: Any) -> Member:
        """A member whose address is confirmed."""
        found = member or self.member()
        token = self.asks(found, **choice)
        assert token is not None
        notices.confirm(self.desk, found, token)
        return found

    def flag(self, **fields: Any) -> Session:
        """A session that needs somebody, as a payment flags it."""
        flagged = {"attention": Attention.LATE_PAYMENT, "received": 700, **fields}
        session = self.create()
        session = replace(session, status=Status.CANCELED, **flagged)
        table = f"{PREFIX}-checkout_sessions"
        self.dynamo.put_item(TableName=table, Item=session_item(session))
        self.dynamo.put_item(TableName=table, Item=flag_item(session))
        return session

    def subscriber(self, member: Member) -> Subscriber:
        found = self.services.subscribers.get(subscriber_id(member.id))
        assert found is not None
        return found

    @property
    def mails(self) -> list[EmailMessage]:
        return self.box.read


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_what_needs_somebody_is_told_once_within_minutes(shop: Shop) -> None:
    shop.told()
    session = shop.flag(client_reference_id="Eva Muster 42")
    shop.flag(attention=Attention.PARTIAL_PAYMENT)
    shop.flag(attention=Attention.PARTIAL_PAYMENT)
    shop.sweep(rounds=6)
    (mail,) = shop.mails
    assert (mail["From"], mail["To"]) == (SENDER, TO)
    assert _plain(mail["Subject"]) == "Shop: this needs you"
    text = text_of(mail)
    assert "Payments of which only a part has arrived: 2" in text
    assert "Payments that arrived after the session had ended: 1" in text
    assert "http://localhost:4000/dashboard/needs" in text
    for secret in (session.id, "Eva", "42", session.id[3:]):
        assert secret not in text + text_of(mail, "html")
    shop.sweep(rounds=60)
    assert len(shop.mails) == 1


def _plain(text: str) -> str:
    return "".join(each for each in text if each.isprintable())


def test_only_what_is_new_is_in_the_next_one(shop: Shop) -> None:
    shop.told()
    shop.flag()
    shop.sweep(rounds=6)
    shop.flag(attention=Attention.UNDECIDED)
    shop.sweep(rounds=6)
    second = text_of(shop.mails[1])
    assert "clear answer from a wallet provider: 1" in second
    assert "after the session had ended" not in second


def test_what_is_solved_before_is_not_told(shop: Shop) -> None:
    shop.told(pace=Pace.DAILY)
    session = shop.flag()
    shop.services.notes.put(
        a_note(
            session=session.id,
            merchant=shop.merchant.id,
            version=1,
            dealt_with=f"{Attention.LATE_PAYMENT} 700",
        )
    )
    shop.sweep(rounds=24 * 60)
    assert shop.mails == []


def test_an_endpoint_that_is_enabled_again_is_not_told_although_copies_are_kept(
    shop: Shop,
) -> None:
    shop.told(pace=Pace.DAILY)
    shop.clock.pass_time((_to_seven(shop) - 2 * MINUTE).total_seconds())
    disabled = an_endpoint(url="https://shop.example/hooks?secret=1", disabled_at=shop.clock.now())
    stored = shop.stored().changed(endpoint=disabled)
    shop.core.merchants.replace(stored)
    shop.services.merchants.get(shop.merchant.id)  # a copy in the sweep's process
    enabled = replace(disabled, disabled_at=None)
    shop.core.merchants.replace(stored.changed(endpoint=enabled))
    shop.sweep(rounds=3)
    assert shop.mails == []


def _to_seven(shop: Shop) -> timedelta:
    now = shop.clock.now()
    seven = datetime.combine(now.date(), datetime.min.time(), now.tzinfo) + timedelta(hours=7)
    return seven - now if now < seven else seven + timedelta(days=1) - now


def test_one_who_wants_it_daily_gets_one_e_mail_at_seven(shop: Shop) -> None:
    shop.told(pace=Pace.DAILY)
    wait = _to_seven(shop)
    shop.flag()
    shop.clock.pass_time((wait - 3 * MINUTE).total_seconds())
    shop.sweep(rounds=2)
    assert shop.mails == []
    shop.flag()
    shop.sweep(rounds=3)
    (mail,) = shop.mails
    assert "after the session had ended: 2" in text_of(mail)
    shop.sweep(rounds=10)
    assert len(shop.mails) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_notice_is_in_the_members_language(shop: Shop, language: str) -> None:
    shop.told(language=language)
    shop.flag()
    shop.sweep(rounds=6)
    (mail,) = shop.mails
    english = "after the session had ended"
    assert (english in text_of(mail)) is (language == "en")
    html = text_of(mail, "html")
    assert f'lang="{language}"' in html
    assert ('dir="rtl"' in html) is (language == "ar")
    assert text_of(mail).count(": 1\n") == 1


def test_every_case_has_words_and_a_topic_in_every_language(shop: Shop) -> None:
    from checkout.ports import Notice

    assert set(notices.TOPICS) == set(Case)
    for language in LANGUAGES:
        counts = tuple((case.value, 3) for case in Case)
        letter = notice_email(Notice(TO, language, "Shop", counts, "https://n", "https://s"))
        lines = [line for line in letter.text.splitlines() if line.endswith(": 3")]
        assert len(set(lines)) == len(Case)


def test_all_kinds_of_things_are_told_and_only_the_chosen_ones(shop: Shop) -> None:
    all_of_it = shop.told(shop.member("Ada"))
    shop.told(shop.member("Ben"), address="ben@shop.example", topics=(Topic.WEBHOOKS,))
    now = shop.clock.now()
    gone = an_endpoint(url="https://shop.example/hooks", disabled_at=now)
    shop.core.merchants.replace(shop.stored().changed(endpoint=gone))
    put_key(
        shop.dynamo,
        PREFIX,
        a_key(
            id=new_key_id(shop.services.random_bytes),
            merchant=shop.merchant.id,
            ends_at=now + timedelta(days=3),
            last_used_at=now,
        ),
    )
    merchant = shop.merchant.id
    identity = f"man_{merchant.partition('_')[2]}"
    ended = a_mandate(MandateStatus.REVOKED, id=identity, merchant=merchant, over_at=now)
    shop.core.mandates.begin(ended)
    shop.flag()
    shop.sweep(rounds=6)
    to_ada, to_ben = sorted(shop.mails, key=lambda each: str(each["To"]))
    for said in (
        "endpoints that are disabled: 1",
        "API keys in use that end soon: 1",
        "Refund budgets that your wallet has ended",
        "the session had ended: 1",
    ):
        assert said in text_of(to_ada)
        assert (said in text_of(to_ben)) is (said == "endpoints that are disabled: 1")
    assert all_of_it.name not in text_of(to_ben)


def test_a_merchant_who_is_no_more_fails_the_look_of_that_member_only(shop: Shop) -> None:
    gone = shop.join_without_key(f"{HARBOR}/bob").merchant.id
    shop.told(shop.member("Mallory", merchant=gone), address="m@other.example")
    row = {"TableName": f"{PREFIX}-merchants", "Key": {"id": {"S": gone}}}
    shop.dynamo.transact_write_items(TransactItems=[{"Delete": row}])
    shop.told()
    shop.flag()
    shop.sweep(rounds=3)
    assert [each["To"] for each in shop.mails] == [TO]


def test_nobody_of_another_merchant_and_nobody_who_was_revoked_is_told(shop: Shop) -> None:
    other = shop.join_without_key(f"{HARBOR}/bob").merchant.id
    shop.told(shop.member("Mallory", merchant=other), address="m@other.example")
    revoked = shop.told(shop.member("Ben"), address="ben@shop.example")
    shop.services.people.replace(revoked.changed(revoked_at=shop.clock.now()))
    shop.flag()
    shop.sweep(rounds=12)
    assert shop.mails == []
    assert shop.subscriber(revoked).address is None
    assert "shop.example" not in str(_row(shop, revoked))


def _row(shop: Shop, member: Member) -> dict[str, Any]:
    key = {"id": {"S": subscriber_id(member.id)}}
    found: dict[str, Any] = shop.dynamo.get_item(TableName=f"{PREFIX}-checkout_sessions", Key=key)
    return found["Item"]  # type: ignore[no-any-return]


def test_an_address_gets_nothing_before_it_is_confirmed(shop: Shop) -> None:
    member = shop.member()
    shop.asks(member)
    shop.flag()
    shop.sweep(rounds=10)
    assert shop.mails == []
    shop.clock.pass_time(24 * 3600)
    shop.sweep()
    assert notices.of(shop.desk, member) is None


def test_the_address_of_before_is_used_until_a_new_one_is_confirmed(shop: Shop) -> None:
    member = shop.told()
    token = shop.asks(member, "new@shop.example")
    assert token is not None
    shop.flag()
    shop.sweep(rounds=6)
    notices.confirm(shop.desk, member, token)
    shop.flag(attention=Attention.UNDECIDED)
    shop.sweep(rounds=6)
    assert [each["To"] for each in shop.mails] == [TO, "new@shop.example"]
    assert shop.asks(member, "new@shop.example", topics=(Topic.WALLET,)) is None


def test_a_link_works_whole_and_for_a_day(shop: Shop) -> None:
    member = shop.member()
    token = shop.asks(member)
    assert token is not None
    with pytest.raises(ParameterInvalid):
        notices.confirm(shop.desk, member, token[:-1])
    shop.clock.pass_time(24 * 3600)
    with pytest.raises(ParameterInvalid):
        notices.confirm(shop.desk, member, token)


def test_a_look_that_is_not_due_does_nothing(shop: Shop) -> None:
    member = shop.told(pace=Pace.DAILY)
    shop.flag()
    known = shop.subscriber(member)
    assert notices.look(shop.services, known) is known
    assert shop.mails == []


def test_two_rounds_at_once_send_one_e_mail(shop: Shop) -> None:
    member = shop.told()
    shop.flag()
    known = shop.subscriber(member)
    first = notices.look(shop.services, known)
    second = notices.look(shop.services, known)
    assert (first.version, second) == (known.version + 1, known)
    assert len(shop.mails) == 1


def test_an_e_mail_without_an_answer_is_not_sent_again(shop: Shop) -> None:
    shop.told()
    shop.flag()
    shop.box.silent = True
    shop.sweep(rounds=6)
    shop.box.silent = False
    shop.sweep(rounds=90)
    assert len(shop.mails) == 1


def test_an_e_mail_that_was_refused_is_sent_again_later(shop: Shop) -> None:
    shop.told()
    shop.flag()
    shop.box.refuses = "TooManyRequestsException"
    shop.sweep(rounds=6)
    assert shop.mails == []
    shop.box.refuses = None
    shop.sweep(rounds=30)
    assert shop.mails == []
    shop.sweep(rounds=40)
    assert len(shop.mails) == 1


def test_a_process_that_dies_after_its_write_tells_nothing_twice(shop: Shop) -> None:
    shop.told()
    shop.flag()

    class Dies:
        def send(self, letter: Any) -> None:
            raise Killed

    dying = replace(shop.services, mail=Dies())
    with pytest.raises(Killed):
        sweep.run(dying, until=shop.clock.now() + MINUTE)
    shop.sweep(rounds=20)
    assert shop.mails == []


def test_without_a_sender_nothing_is_told_and_nothing_is_counted_as_told(shop: Shop) -> None:
    shop.told()
    shop.flag()
    with_mail = shop.services
    shop.services = replace(with_mail, mail=None)
    shop.sweep(rounds=10)
    shop.services = with_mail
    shop.sweep(rounds=6)
    assert len(shop.mails) == 1


def test_a_store_that_fails_leaves_the_notice_for_the_next_round(shop: Shop) -> None:
    shop.told()
    shop.flag()
    works = shop.services

    class Gone:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            raise RuntimeError("the store is away")

    gone: Any = Gone()
    shop.services = replace(works, notes=gone)
    shop.sweep(rounds=2)
    shop.services = works
    shop.sweep(rounds=2)
    assert len(shop.mails) == 1


def test_an_address_with_a_header_behind_it_is_refused(shop: Shop) -> None:
    with pytest.raises(EmailInvalid):
        shop.asks(shop.member(), "ada@shop.example\nBcc: x@y.example")


@pytest.mark.parametrize(
    ("shops", "members", "client", "address", "sent"),
    [
        (1, 1, "192.0.2.{n}", "victim{n}@other.example", 5),
        (1, 4, "192.0.2.{n}", "victim{n}@other.example", 10),
        (3, 3, HERE, "victim{n}@other.example", 20),
        (3, 3, "192.0.2.{n}", "{case}+{n}@other.example", 3),
    ],
    ids=["a member", "a shop", "a network address", "a mailbox"],
)
def test_addresses_that_nobody_has_confirmed_get_few_e_mails(
    shop: Shop, shops: int, members: int, client: str, address: str, sent: int
) -> None:
    wallets = (f"{HARBOR}/shop-jpy", f"{HARBOR}/bob")
    merchants = [shop.merchant, *(shop.join_without_key(each).merchant for each in wallets)]
    asking = [shop.member(merchant=each.id) for each in merchants[:shops] for _ in range(members)]
    done = 0
    for n in range(6 * len(asking)):
        # Each in a process of its own, which remembers nothing.
        limited = services.limits(shop.clock, shop.dynamo, PREFIX, 600)
        shop.desk = replace(shop.desk, limits=limited)
        given = {"n": n, "case": "Victim" if n % 2 else "victim"}
        try:
            member = asking[n % len(asking)]
            shop.asks(member, address.format(**given), client=client.format(**given))
            done += 1
        except RateLimited:
            continue
    assert done == sent
    shop.clock.pass_time(24 * 3600)
    assert shop.asks(asking[0], "ada@shop.example")


def test_one_who_has_stopped_is_told_nothing_and_can_begin_again(shop: Shop) -> None:
    member = shop.told()
    notices.stop(shop.desk, member)
    notices.stop(shop.desk, member)
    assert notices.of(shop.desk, member) is None
    shop.flag()
    shop.sweep(rounds=10)
    assert shop.mails == []
    shop.told(member)
    shop.sweep(rounds=6)
    assert len(shop.mails) == 1


def test_a_change_over_a_newer_one_is_refused(shop: Shop) -> None:
    member = shop.told()
    token = shop.asks(member, "new@shop.example")
    assert token is not None

    class Late:
        """Reads, and is always too late to write."""

        def get(self, subscriber: str) -> Any:
            return shop.services.subscribers.get(subscriber)

        def put(self, subscriber: Subscriber, reservation: Any = None) -> bool:
            return False

    subscribers: Any = Late()
    late = replace(shop.desk, subscribers=subscribers)
    for change in (
        lambda: notices.stop(late, member),
        lambda: notices.confirm(late, member, token),
        lambda: notices.choose(
            late,
            member,
            client=HERE,
            address=TO,
            topics=[Topic.WALLET],
            pace=Pace.DAILY,
            language="en",
        ),
    ):
        with pytest.raises(Conflict):
            change()


def test_a_lost_answer_to_our_own_write_is_not_taken_for_another_process(shop: Shop) -> None:
    member = shop.told()
    shop.flag()
    known = shop.subscriber(member)
    changed = known.changed(writer="me")
    assert shop.services.subscribers.put(changed)
    assert shop.services.subscribers.put(changed)
    assert not shop.services.subscribers.put(known.changed(writer="another"))


def test_the_schedule_writes_notices(shop: Shop) -> None:
    from expirer import app
    from tests.support.basics import Left

    shop.services = replace(shop.services, write_notice=app._written)
    shop.told()
    shop.flag()
    shop.listen(EXPIRED)
    at = shop.clock.now()
    failed = Delivery(at=at, duration_ms=5, status=500, answer="")
    shop.core.events.add(
        an_event(merchant=shop.merchant.id, created_at=at, deliveries=(failed,) * 3)
    )
    assert scheduled(lambda: shop.services)({}, Left(75))["SessionsChecked"] >= 1
    assert "Webhook endpoints that fail: 1" in text_of(shop.mails[0])


def test_a_row_of_a_subscriber_is_read_as_it_was_stored(shop: Shop) -> None:
    member = shop.told()
    assert subscriber_from(_row(shop, member)) == shop.subscriber(member)
