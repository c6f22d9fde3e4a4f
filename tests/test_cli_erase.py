"""Test `checkout erase`: no byte of a wallet is left, in no table, log or export."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from checkout import cli, telemetry
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.adapters.dynamo.index_keys import search_key
from checkout.adapters.dynamo.records import session_item
from checkout.domain.erasure import Customer
from checkout.domain.ground.addresses import Address
from checkout.domain.merchant.audit import Action
from checkout.domain.reports.search_terms import last_part
from checkout.domain.session.collect import QuestionKind
from checkout.domain.session.customer_details import NONE_GIVEN, Answer, CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.domain.session.withdrawal import Withdrawal
from checkout.domain.webhooks.record import Delivery, EventStatus, Format, WebhookEvent
from checkout.flows import audit, erase
from checkout.flows.links import purchase
from checkout.flows.session import details
from checkout.ports import Stale, StaleEvent, StaleRecord, Transaction
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import NOW, count_ends
from tests.support.dashboard_pages import dashboard_of
from tests.support.deployment import Deployment
from tests.support.flows import CEDAR, PREFIX
from tests.support.merchant_api import a_body
from tests.support.rows import row_of, row_text
from tests.support.samples import a_note
from tests.support.stores import EMULATED, boto, with_tables

ALICE = f"{CEDAR}/alice"
TABLES = ("merchants", "api_keys", "checkout_sessions", "idempotency_keys", "webhook_events")
Told = Callable[[], list[dict[str, Any]]]


class SmallPages:
    """A client whose scans give 60 rows a page, as DynamoDB gives a megabyte."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def scan(self, **request: Any) -> Any:
        return self.client.scan(**{"Limit": 60, **request})


class Shop:
    """A deployment, its operator's command, and the raw rows of its tables."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.deployed = Deployment(client)
        self.world = self.deployed.world
        self.records: DynamoRecords = DynamoRecords(SmallPages(client), PREFIX)
        self.deployed.wants_webhooks()
        self.carts = 1

    def cart(self, email: str | None = None) -> Session:
        """Return a purchase at a link whose customer gave GIVEN, or another e-mail address."""
        given = GIVEN if email is None else replace(GIVEN, email=email)
        nonce = f"{self.carts}" * 22
        self.carts += 1
        begun = purchase.begin(self.world.services, self.world.link(), nonce, "203.0.113.7", given)
        return self.world.session(begun.session_id)

    def send_again(self, event: WebhookEvent) -> None:
        """Have an event that was delivered pending once more."""
        sent = replace(event, version=event.version + 1, status=EventStatus.PENDING, ended_at=None)
        self.world.services.events.save(sent)

    def answered(self, event: WebhookEvent, told: Delivery) -> None:
        """End the round of `send_again` with this answer."""
        self.world.services.events.save(
            replace(event, version=event.version + 2, deliveries=(told,))
        )

    def asks_for_all(self) -> None:
        """Have the merchant's endpoint ask for all events, in Stripe's form."""
        endpoint = replace(self.world.endpoint(), format=Format.STRIPE, asked=("*",))
        self.world.services.merchants.replace(self.world.stored().changed(endpoint=endpoint))

    def erase(self, wallet: str = ALICE, records: DynamoRecords | None = None) -> int:
        return self.run("--wallet-address", wallet, records=records)

    def erase_by_email(self, email: str) -> int:
        return self.run("--email", email)

    def run(self, *whom: str, records: DynamoRecords | None = None) -> int:
        return cli.main(
            ["erase", *whom],
            lambda: replace(self.world.endpoints, allow_loopback=True),
            lambda: records or self.records,
        )

    def paid(self, wallet: str = ALICE, body: dict[str, Any] | None = None) -> Session:
        """Return a session that a customer has paid, all of whose webhooks were delivered."""
        session = self.submitted(wallet, body)
        interact_url = self.deployed.stored(session).interact_url
        assert interact_url is not None
        self.deployed.come_back(session, self.deployed.approve(interact_url))
        session = self.deployed.stored(session)
        assert session.status is Status.COMPLETED
        self.deployed.send_webhooks()
        return session

    def submitted(self, wallet: str = ALICE, body: dict[str, Any] | None = None) -> Session:
        key = f"key-{self.world.clock.now()}"
        answer = self.deployed.call(
            "POST", "/sessions", a_body(**(body or {})), Idempotency_Key=key
        )
        session = self.world.session(answer.json["id"])
        self.deployed.submit(session, wallet)
        self.world.clock.pass_time(1)
        return session

    def pass_days(self, days: int) -> None:
        """Sweep until nothing is to be checked any more."""
        for _ in range(days):
            self.world.clock.pass_time(86_400)
            for _ in range(3):
                self.deployed.sweep()
                self.world.clock.pass_time(40)
        self.deployed.send_webhooks()

    def rows(self, table: str) -> list[Any]:
        found: list[Any] = []
        start: dict[str, Any] = {}
        while True:
            page = self.client.scan(TableName=f"{PREFIX}-{table}", ConsistentRead=True, **start)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return found
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def raw(self) -> str:
        """Return every byte that the tables hold."""
        return "\n".join(row_text(row) for table in TABLES for row in self.rows(table))

    def multiply(self, session: Session, count: int) -> None:
        """Store copies of the raw rows of a session and its events, under other ids."""
        assert session.event is not None
        sources = [
            (table, row_text(row))
            for table in ("checkout_sessions", "webhook_events")
            for row in self.rows(table)
            if session.id in row_text(row)
        ]
        for number in range(count):
            for table, row in sources:
                copy = row.replace(session.id, f"cs_{number:022d}")
                copy = copy.replace(session.event, f"evt_{number:022d}")
                self.client.put_item(TableName=f"{PREFIX}-{table}", Item=row_of(copy))

    def sums(self) -> list[Any]:
        days = [row for row in self.rows("checkout_sessions") if row["id"]["S"].startswith("day#")]
        return sorted(days, key=str)

    def count(self) -> None:
        """Have the daily sums counted."""
        count_ends(self.world.services.daily_totals, self.world.clock)


@pytest.fixture
def shop() -> Shop:
    return Shop(InMemoryDynamoDb(table_definitions(PREFIX)))


@pytest.fixture(params=["memory", EMULATED])
def stocked(request: pytest.FixtureRequest) -> Iterator[tuple[Shop, int]]:
    """Return a shop on each DynamoDB, and how many sessions it can hold in a few seconds."""
    if request.param == "memory":
        yield Shop(InMemoryDynamoDb(table_definitions(PREFIX))), 200
    else:
        yield Shop(with_tables(boto(request.getfixturevalue("emulator")), PREFIX)), 300


def test_hundreds_of_sessions_leave_no_trace_in_any_table_log_or_export_and_the_sums_stay(
    stocked: tuple[Shop, int], told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, many = stocked
    monkeypatch.setattr(telemetry, "SAMPLE", 1)  # every request's debug lines
    telemetry.start("pay")
    named = {"metadata": {"wallet": ALICE, "note": "for $localhost:4101/alice", "order": "A-1"}}
    paid = shop.paid(body=named)
    carols = shop.paid(f"{CEDAR}/carol")
    shop.submitted()  # and left
    canceled = shop.submitted()
    shop.deployed.call("POST", f"/sessions/{canceled.id}/cancel")
    shop.multiply(paid, many)
    shop.pass_days(2)
    shop.count()
    sums, before = shop.sums(), shop.raw()
    key = search_key(paid.merchant, last_part(ALICE))
    assert before.count("/alice") > 6 * many
    assert key in before
    lines = json.dumps(told())

    assert shop.erase() == 0
    printed = told_text(told)
    after = shop.raw()
    assert "alice" not in after
    assert key not in after
    assert after.count(ERASED_STEP) == many + 3
    assert shop.sums() == sums
    assert shop.deployed.stored(carols) == carols
    assert "alice" not in lines + printed
    with dashboard_of(shop.world) as browser:
        for path in ("", f"/transactions/{paid.id}", "/export/transactions.csv"):
            text = browser.get(path).body
            assert "alice" not in text
            assert path.endswith("csv") or "erased" in text
        assert f"{CEDAR}/carol" in browser.get(f"/transactions/{carols.id}").body
    answer = shop.deployed.call("GET", f"/sessions/{paid.id}")
    assert answer.json["customer_wallet"] is None
    assert answer.json["metadata"]["wallet"] == "erased"
    after = shop.raw()
    assert shop.erase() == 0
    assert shop.raw() == after


ERASED_STEP = '\\"erased\\"]'  # in the packed history of a session


def told_text(told: Told) -> str:
    """Return what was printed since: the command's lines are no JSON."""
    try:
        return json.dumps(told())
    except json.JSONDecodeError as error:
        return error.doc


class Killed(Exception):
    """The process ends here."""


class DyingRecords:
    """Records whose reader dies after a number of sessions or events."""

    def __init__(self, inner: DynamoRecords, after: int, kind: str) -> None:
        self._inner, self._after, self._kind = inner, after, kind

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._inner, name)
        return self._until_killed if name == self._kind else read

    def _until_killed(self) -> Iterator[Any]:
        for number, record in enumerate(getattr(self._inner, self._kind)()):
            if number == self._after:
                raise Killed
            yield record


@pytest.mark.parametrize("kind", ["sessions", "events"])
def test_a_run_that_was_killed_is_continued_by_the_next(shop: Shop, kind: str) -> None:
    shop.multiply(shop.paid(), 20)
    dying: Any = DyingRecords(shop.records, 11, kind)
    with pytest.raises(Killed):
        shop.erase(records=dying)
    assert "alice" in shop.raw()
    assert shop.erase() == 0
    assert "alice" not in shop.raw()


def test_a_payment_under_way_is_kept_reported_and_goes_on(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    session = shop.submitted()
    assert shop.erase() == 1
    assert "kept: 1 sessions that have not ended" in capsys.readouterr().err
    stored = shop.deployed.stored(session)
    assert stored.customer is not None
    assert stored.interact_url is not None
    shop.deployed.come_back(session, shop.deployed.approve(stored.interact_url))
    assert shop.deployed.stored(session).status is Status.COMPLETED

    assert shop.erase() == 1  # the merchant is still to be told
    assert "kept: 1 webhook events that are still to be delivered" in capsys.readouterr().err
    assert shop.deployed.stored(session).erased
    assert shop.deployed.send_webhooks() != []
    assert shop.erase() == 0
    assert "Nothing of this customer is left" in capsys.readouterr().out
    assert "alice" not in shop.raw()


def test_a_payment_in_doubt_and_a_session_that_is_still_checked_are_kept(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    in_doubt = shop.world.in_doubt()
    canceled = shop.submitted()
    shop.deployed.call("POST", f"/sessions/{canceled.id}/cancel")
    before = [shop.deployed.stored(each) for each in (in_doubt, canceled)]
    assert shop.erase() == 1
    err = capsys.readouterr().err
    assert "kept: 1 sessions with a payment under way, or partly paid" in err
    assert "kept: 1 ended sessions whose received amount is not certain" in err
    assert [shop.deployed.stored(each) for each in (in_doubt, canceled)] == before
    assert f"{ALICE}" not in err
    shop.pass_days(2)
    assert shop.erase() == 0


def test_a_session_that_is_erased_before_it_was_counted_counts_the_same(shop: Shop) -> None:
    other = Shop(InMemoryDynamoDb(table_definitions(PREFIX)))
    for each in (shop, other):
        each.paid()
    assert shop.erase() == 0
    for each in (shop, other):
        each.count()
    assert [row["wallet"] for row in shop.sums()] == [row["wallet"] for row in other.sums()]
    assert shop.sums()[0]["wallet"] == {"N": "1"}


class OldRecords:
    """Records as they were read before others changed them."""

    def __init__(self, inner: DynamoRecords) -> None:
        self._inner = inner
        self._read: dict[str, list[Any]] = {
            "sessions": [*inner.sessions()],
            "events": [*inner.events()],
        }

    def __getattr__(self, name: str) -> Any:
        read = self._read.get(name)
        return getattr(self._inner, name) if read is None else lambda: iter(read)


def test_the_loser_of_a_race_decides_again(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    session = shop.paid()
    canceled = shop.submitted()
    read: Any = OldRecords(shop.records)
    event = shop.world.event(session.event)
    again = replace(event, version=event.version + 1, status=EventStatus.PENDING, ended_at=None)
    shop.world.services.events.save(again)
    shop.deployed.call("POST", f"/sessions/{canceled.id}/cancel")
    shop.pass_days(2)
    assert shop.world.event(session.event).status is EventStatus.DELIVERED
    assert shop.erase(records=read) == 0
    assert "alice" not in shop.raw()


def test_a_row_that_cannot_be_read_is_reported(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.paid()
    shop.client.put_item(TableName=f"{PREFIX}-checkout_sessions", Item={"id": {"S": "cs_broken"}})
    assert shop.erase() == 1
    assert "kept: 1 rows that cannot be read" in capsys.readouterr().err
    assert "alice" not in shop.raw()
    assert shop.erase_by_email(ANA) == 1
    assert "kept: 1 rows that cannot be read" in capsys.readouterr().err


def test_what_is_no_wallet_address_is_refused(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shop.erase("https://wallet.example/alice?x=1") == 1
    assert "A wallet address has no ?" in capsys.readouterr().err
    assert shop.erase(f"{CEDAR}/nobody") == 0
    assert "No record contains this address" in capsys.readouterr().out


class NeverFirst:
    """A store whose writes all lose a race, to a winner who changed nothing that matters."""

    def __init__(self, inner: Any, stale: type[Stale]) -> None:
        self._inner, self._stale = inner, stale

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def save(self, saved: Any) -> Any:
        ours = isinstance(saved, Transaction)
        raise self._stale(saved.change.before if ours else self._now(saved))

    def _now(self, changed: WebhookEvent) -> Any:
        return self._inner.get(changed.id)


@pytest.mark.parametrize(("name", "stale"), [("sessions", StaleRecord), ("events", StaleEvent)])
def test_what_others_keep_changing_is_reported(
    shop: Shop, name: str, stale: type[Stale], capsys: pytest.CaptureFixture[str]
) -> None:
    shop.paid()
    services = shop.world.endpoints
    changed: Any = {name: NeverFirst(getattr(services, name), stale)}
    report = erase.erase(
        replace(services, **changed),
        shop.records,
        Customer((ALICE,)),
        on_progress=lambda report: None,
    )
    assert report.kept == {erase.Kept.BUSY: 1}
    assert shop.erase() == 0


def test_the_audit_log_is_erased_and_progress_is_told(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.paid()
    key, services = shop.world.key(), shop.world.endpoints
    audit.note(services, replace(key, name=f"for {ALICE}"), Action.KEY_CREATED, ALICE)
    monkeypatch.setattr(erase, "TELL_EVERY", 2)
    told: list[int] = []
    report = erase.erase(
        services,
        shop.records,
        Customer((ALICE,)),
        on_progress=lambda report: told.append(report.read.total()),
    )
    assert report.erased["audit entries"] == 1
    assert told == [2, 4, 4]
    [entry] = audit.list_page(services, key, None).records
    assert (entry.actor_name, entry.target) == ("for erased", "erased")


def test_an_attempt_of_a_session_that_another_wallet_paid_is_erased(shop: Shop) -> None:
    session = shop.submitted()
    shop.deployed.submit(session, f"{CEDAR}/scale9")
    interact_url = shop.deployed.stored(session).interact_url
    assert interact_url is not None
    shop.deployed.come_back(session, shop.deployed.approve(interact_url))
    shop.deployed.send_webhooks()
    before = shop.deployed.stored(session)
    assert before.status is Status.COMPLETED
    assert ALICE in str(before.payment_attempts[0])
    assert shop.erase() == 0
    assert ALICE not in shop.raw()
    after = shop.deployed.stored(session)
    hers, other = after.payment_attempts
    assert (hers.typed, hers.wallet, hers.quote, hers.outcome) == (
        None,
        None,
        None,
        before.payment_attempts[0].outcome,
    )
    assert other == before.payment_attempts[1]
    assert after.customer == before.customer


def test_an_answer_that_took_the_place_of_another_is_left_alone(shop: Shop) -> None:
    shop.submitted()
    [answer] = shop.records.answers()
    assert answer is not None
    shop.records.replace_answer(replace(answer, writer="another", body="{}"))
    assert [*shop.records.answers()] == [answer]
    shop.records.replace_answer(replace(answer, body="{}"))
    assert [*shop.records.answers()] == [replace(answer, body="{}")]


def test_notes_on_a_customers_sessions_are_emptied_and_others_lose_the_wallet(shop: Shop) -> None:
    notes = shop.world.endpoints.notes
    paid, carols, bare = shop.paid(), shop.paid(f"{CEDAR}/carol"), shop.paid()
    for session, text, tags in (
        (paid, "Ms Smith, phoned", ("vip",)),
        (carols, f"paid for {ALICE}", ("late",)),
        (bare, "", ()),
    ):
        assert notes.put(a_note(session=session.id, text=text, tags=tags))
    shop.pass_days(1)
    assert shop.erase() == 0
    found = notes.of([paid.id, carols.id, bare.id])
    assert (found[paid.id].text, found[paid.id].tags) == ("", ())
    assert (found[carols.id].text, found[carols.id].tags) == ("paid for erased", ("late",))
    assert found[bare.id].version == 1
    assert "alice" not in shop.raw()


def test_the_name_and_address_of_a_withdrawal_go_with_the_wallet(shop: Shop) -> None:
    services, merchant = shop.world.services, shop.world.stored()
    said = details.seal_said(services.vault, merchant, "cs_1", GIVEN)
    paid, carols, cleared = shop.paid(), shop.paid(f"{CEDAR}/carol"), shop.paid()
    for session in (paid, carols):
        filed = Withdrawal(session=session.id, merchant=merchant.id, at=NOW, said=said)
        assert services.withdrawals.put(filed, session)
    bare = Withdrawal(session=cleared.id, merchant=merchant.id, at=NOW)
    assert services.withdrawals.put(bare, cleared)
    shop.pass_days(1)
    assert shop.erase() == 0
    found = services.withdrawals.of([paid.id, carols.id, cleared.id])
    assert (found[paid.id].said, found[carols.id].said) == (None, said)
    assert found[cleared.id].version == 1
    assert details.opened_said(services.vault, merchant, found[paid.id]) == NONE_GIVEN


def withdrawn(shop: Shop, session: Session, email: str) -> Withdrawal:
    """File a withdrawal from the session with this e-mail address."""
    services, merchant = shop.world.services, shop.world.stored()
    given = CustomerDetails(name="Ana Bel", email=email)
    said = details.seal_said(services.vault, merchant, session.id, given)
    filed = Withdrawal(session=session.id, merchant=merchant.id, at=NOW, said=said)
    assert services.withdrawals.put(filed, session)
    return filed


def test_who_gave_an_e_mail_address_with_a_withdrawal_alone_is_found_by_it(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """The session is theirs if it names nobody else; of another one only the withdrawal is."""
    bare, anas, others = shop.paid(), shop.paid(body={"customer_email": ANA}), shop.paid()
    for session, email in ((bare, "Kim@Example.com"), (anas, "kim@example.com"), (others, ANA)):
        withdrawn(shop, session, email)
    before = shop.deployed.stored(anas)
    assert shop.erase_by_email("kim@example.com") == 0
    assert "Nothing of this customer is left" in capsys.readouterr().out
    found = shop.world.services.withdrawals.of([bare.id, anas.id, others.id])
    assert [found[each.id].said is None for each in (bare, anas, others)] == [True, True, False]
    assert shop.deployed.stored(bare).erased
    assert shop.deployed.stored(anas) == before
    assert not shop.deployed.stored(others).erased
    raw = shop.raw()
    assert shop.erase_by_email("kim@example.com") == 0
    assert shop.raw() == raw


def test_a_withdrawal_that_is_kept_longer_than_its_session_is_erased(shop: Shop) -> None:
    gone = replace(shop.paid(), id="cs_" + "9" * 22)
    withdrawn(shop, gone, "kim@example.com")
    assert shop.erase_by_email("kim@example.com") == 0
    left = shop.world.services.withdrawals.get(gone.id)
    assert left is not None
    assert (left.said, left.version) == (None, 2)


def test_a_withdrawal_that_cannot_be_read_is_reported(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    session = shop.paid()
    filed = withdrawn(shop, session, "kim@example.com")
    changed = replace(filed, said="v1.00000000.eA", version=2)
    assert shop.world.services.withdrawals.put(changed, session)
    assert shop.erase_by_email("kim@example.com") == 1
    assert f"The withdrawal from {session.id} does not open." in capsys.readouterr().err
    broken = {"id": {"S": f"withdrawal#{session.id}"}}
    shop.client.put_item(TableName=f"{PREFIX}-checkout_sessions", Item=broken)
    assert shop.erase_by_email("kim@example.com") == 1
    assert "kept: 1 rows that cannot be read" in capsys.readouterr().err


def test_a_session_names_its_customer(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    hers, other = shop.paid(), shop.paid()
    assert shop.run("--session", hers.id) == 0
    assert "Nothing of this customer is left" in capsys.readouterr().out
    assert shop.deployed.stored(hers).erased
    assert not shop.deployed.stored(other).erased
    raw = shop.raw()
    assert shop.run("--session", hers.id) == 0
    assert shop.raw() == raw
    assert shop.run("--session", ALICE) == 1
    assert "This is not the id of a session." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["notes", "withdrawals"])
def test_what_lies_beside_a_session_and_others_keep_changing_is_reported(
    shop: Shop, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paid, services = shop.paid(), shop.world.services
    filed = Withdrawal(session=paid.id, merchant="mer_1", at=NOW, said="SEALED")
    assert services.withdrawals.put(filed, paid)
    assert services.notes.put(a_note(session=paid.id, text=f"paid for {ALICE}"))
    monkeypatch.setattr(type(getattr(services, name)), "put", lambda *_: False)
    shop.pass_days(1)
    assert shop.erase() != 0
    assert "other requests were changing" in capsys.readouterr().err


GIVEN = CustomerDetails(
    email="ana@example.com",
    name="Ana Bel",
    phone="+44 20 7946 0958",
    shipping=Address("US", "Ana Bel", "1 Main St", None, None, "Springfield", "IL", "62701"),
    billing=Address("DE", "Ana Bel", "Am Weg 1", None, None, "Berlin", None, "10115"),
    answers=(Answer("size", "Size", QuestionKind.TEXT, "Extra large", "Extra large"),),
)
VALUES = ("ana@example.com", "Ana Bel", "7946", "Main St", "62701", "Am Weg 1", "Extra large")


def test_what_a_customer_gave_at_a_link_is_in_no_table_and_its_sealed_form_goes_with_the_wallet(
    shop: Shop, told: Told
) -> None:
    session = shop.cart()
    assert session.customer_details is not None
    assert session.customer_further is not None
    assert session.customer_mark is not None
    assert session.customer_marks
    assert len(session.customer_marks) == 3  # of the name and of two postal codes
    marks = (session.customer_mark, *session.customer_marks)
    sealed = (session.customer_details, session.customer_further, *marks)
    plain = [*VALUES, *(b64encode(each.encode()).decode().rstrip("=") for each in VALUES)]
    before = shop.raw()
    assert all(each in before for each in sealed)
    assert all(each not in before for each in plain)
    shop.world.pay(session)
    shop.pass_days(2)
    assert shop.erase() == 0
    after = shop.raw()
    assert all(each not in after for each in (*sealed, *plain))
    printed = told_text(told)
    assert all(each not in printed for each in plain)
    with dashboard_of(shop.world) as browser:
        for path in (f"/transactions/{session.id}", "/export/transactions.csv"):
            assert all(each not in browser.get(path).body for each in VALUES)


def test_an_e_mail_address_that_the_shop_gave_goes_with_the_wallet(shop: Shop) -> None:
    session = shop.paid(body={"customer_email": "ana@example.com"})
    sealed = (session.customer_details, session.customer_mark)
    before = shop.raw()
    assert all(each is not None and each in before for each in sealed)
    asked = shop.deployed.call("GET", f"/sessions/{session.id}").json
    assert asked["customer_details"]["email"] == "ana@example.com"
    shop.pass_days(2)
    assert shop.erase() == 0
    after = shop.raw()
    assert all(each is not None and each not in after for each in sealed)
    assert shop.deployed.call("GET", f"/sessions/{session.id}").json["customer_details"] is None


def test_what_a_receiver_answered_to_an_event_of_another_wallet_of_the_customer_goes_too(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    world = shop.world
    shop.asks_for_all()
    session = shop.cart()
    world.settle(world.pay(session, f"{CEDAR}/no-funds"))
    world.pay(world.session(session.id))
    shop.pass_days(2)
    [failed] = (each for each in shop.records.events() if each and "no-funds" in each.body)
    assert failed.details_of == session.id
    shop.send_again(failed)
    assert shop.erase() == 1
    assert "1 webhook events that are still to be delivered" in capsys.readouterr().err
    told = Delivery(at=NOW, duration_ms=1, status=200, answer="Ana Bel, 1 Main St: no stock")
    shop.answered(failed, told)
    assert shop.erase() == 0
    assert all(each not in shop.raw() for each in VALUES)
    assert world.event(failed.id).deliveries == (replace(told, answer=None),)
    after = shop.raw()
    assert shop.erase() == 0
    assert shop.raw() == after


ANA = "ana@example.com"


def test_a_cart_without_a_wallet_is_erased_by_its_e_mail_address(shop: Shop) -> None:
    world = shop.world
    cart, other = shop.cart(), shop.cart("an" + ANA)
    assert shop.erase_by_email(ANA) == 1  # it may still be paid
    assert world.session(cart.id) == cart
    shop.pass_days(2)
    kept = world.session(other.id)
    assert shop.erase_by_email("ANA@example.com") == 0
    after = world.session(cart.id)
    assert (after.customer_details, after.customer_further, after.customer_mark) == (None,) * 3
    assert world.session(other.id) == kept
    raw = shop.raw()
    assert shop.erase_by_email(ANA) == 0
    assert shop.raw() == raw


def test_a_paid_session_found_by_e_mail_loses_its_wallets_and_others_of_them_stay(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    world = shop.world
    shop.asks_for_all()
    session = shop.cart()
    world.settle(world.pay(session, f"{CEDAR}/no-funds"))
    world.pay(world.session(session.id))
    same_wallet = shop.paid()
    shop.pass_days(2)
    before = [event for event in shop.records.events() if event]
    assert any("no-funds" in each.body for each in before)
    assert shop.erase_by_email(ANA) == 0
    assert "Nothing of this customer is left" in capsys.readouterr().out
    after = world.session(session.id)
    assert after.erased
    assert [(each.typed, each.wallet) for each in after.payment_attempts] == [(None, None)] * 2
    assert shop.deployed.stored(same_wallet).customer is not None
    told = [event for event in shop.records.events() if event and event.session == session.id]
    assert told
    assert all("no-funds" not in each.body + each.stripe_body for each in told)
    assert all("/alice" not in each.body + each.stripe_body for each in told)


def test_an_event_that_was_pending_when_the_cart_was_erased_is_erased_by_a_later_run(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    world = shop.world
    shop.asks_for_all()
    cart = shop.cart()
    shop.pass_days(2)
    [ended] = (each for each in shop.records.events() if each and each.session == cart.id)
    shop.send_again(ended)
    assert shop.erase_by_email(ANA) == 1
    assert "1 webhook events that are still to be delivered" in capsys.readouterr().err
    told = Delivery(at=NOW, duration_ms=1, status=200, answer="Ana Bel left a cart")
    shop.answered(ended, told)
    assert shop.erase_by_email(ANA) == 0
    assert world.event(ended.id).deliveries == (replace(told, answer=None),)


def test_an_e_mail_address_in_metadata_and_notes_is_erased_but_not_a_longer_one(
    shop: Shop,
) -> None:
    metadata = {
        "by": f"Ana <{ANA}>",
        "at": "https://x.example/?m=ana%40example.com",
        "b": "b" + ANA,
    }
    session = shop.paid(body={"metadata": metadata})
    notes = shop.world.endpoints.notes
    assert notes.put(a_note(session=session.id, text=f"write to {ANA}."))
    shop.pass_days(2)
    assert shop.erase_by_email(ANA) == 0
    after = shop.deployed.stored(session)
    assert dict(after.metadata) == {
        "by": "Ana <erased>",
        "at": "https://x.example/?m=erased",
        "b": "b" + ANA,
    }
    assert after.customer is not None, "whose session it is, nobody has said"
    assert notes.of([session.id])[session.id].text == "write to erased."


def test_an_e_mail_address_that_the_shop_gave_to_stripes_api_is_found(shop: Shop) -> None:
    session = shop.paid()
    shop.pass_days(2)
    stored = shop.deployed.stored(session)
    again = replace(stored, id="cs_" + "7" * 22, echo_json=json.dumps({"customer_email": ANA}))
    table, key = f"{PREFIX}-checkout_sessions", {"id": {"S": session.id}}
    row = shop.client.get_item(TableName=table, Key=key)["Item"]
    shop.client.put_item(TableName=table, Item={**row, **session_item(again)})
    assert shop.erase_by_email(ANA) == 0
    after = shop.world.session(again.id)
    assert (after.customer, after.echo_json) == (None, "{}")
    assert shop.deployed.stored(session) == stored


def test_what_is_no_e_mail_address_is_refused(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shop.erase_by_email("ana") == 1
    assert "not an e-mail address" in capsys.readouterr().err


def test_a_merchant_whose_key_does_not_open_is_named(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.submitted()
    merchant = shop.world.stored()
    shop.world.services.merchants.replace(merchant.changed(details_key="v1.not-a-key"))
    assert shop.erase_by_email(ANA) == 1
    assert f"The key of {merchant.id} for customers' details" in capsys.readouterr().err
