"""The page on which a customer withdraws from a purchase, in two steps."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.record import Session
from checkout.flows.schedule import sweep
from checkout.flows.session import details, withdrawals
from checkout.flows.session import withdrawals as marks
from checkout.ports import Email, SecretUnreadable
from pay import emails
from tests.support.hosted_pages import ISOLATES, STAGES, Answer, Customer, line
from tests.support.outbox import Outbox

EVA = {"name": "Eva Muster", "email": "eva@customer.example"}
CONFIRMED = {**EVA, "confirmed": "1"}
OURS = {"sec-fetch-site": "same-origin"}
DAYS = 14


@pytest.fixture
def paid(buyer: Customer) -> Session:
    buyer.give(withdrawal_days=DAYS)
    return a_purchase(buyer)


def a_purchase(buyer: Customer, **changes: Any) -> Session:
    fields = {"metadata_json": '{"order_number": "B-42"}', "line_items": (line("Tea"),)}
    now = buyer.world.clock.now()
    return buyer.put_in("completed", **{**fields, "completed_at": now, **changes})


def send(buyer: Customer, session: Session, fields: dict[str, str], **options: Any) -> Answer:
    options.setdefault("headers", OURS)
    return buyer.ask("POST", f"/pay/{session.id}/withdrawal", data=fields, **options)


def sweep_after(buyer: Customer, outbox: Outbox, hours: float) -> None:
    world = buyer.world
    world.clock.pass_time(int(hours * 3600))
    services = replace(world.services, mail=outbox, write_acknowledgement=emails.acknowledgement)
    sweep.run(services, until=world.clock.now() + timedelta(minutes=1))


def filed(buyer: Customer, session: Session) -> Any:
    return buyer.world.services.withdrawals.get(session.id)


def test_a_customer_withdraws_in_two_steps_and_gets_a_proof(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    path = f"/pay/{paid.id}/withdrawal"
    assert path in buyer.open(paid, "/success").page.links
    first = buyer.get(path).page
    assert "You need not give a reason. You can withdraw until" in first.main
    assert "Tea" in first.main
    second = send(buyer, paid, EVA)
    assert second.status == 200
    for said in ("I withdraw from this purchase", "Eva Muster", "eva@customer.example"):
        assert said in second.page.main
    assert filed(buyer, paid) is None
    assert outbox.letters == []
    fields = {
        each.attributes["name"]: each.attributes["value"]
        for each in second.page.all("input", type="hidden")
    }
    third = send(buyer, paid, {**fields, "confirmed": "1"})
    assert (third.status, third.headers["location"]) == (303, path)
    proof = buyer.get(path).page
    for said in ("Shop has received your withdrawal.", "Eva Muster", "B-42", paid.id):
        assert said in proof.main
    assert not proof.all("form")
    assert "You have withdrawn from this purchase:" in buyer.open(paid, "/success").page.main
    (letter,) = outbox.letters
    assert letter.to == "eva@customer.example"
    assert letter.subject == "Your withdrawal from your purchase at Shop"
    for said in ("Shop has received your withdrawal.", "Eva Muster", "B-42", "Tea"):
        assert said in letter.text
        assert said in letter.html.translate(ISOLATES)
    assert paid.id not in letter.text + letter.html
    assert "Reference" not in letter.text, "nothing in the dashboard has another number"


def test_name_and_address_are_sealed_in_the_store(buyer: Customer, paid: Session) -> None:
    send(buyer, paid, CONFIRMED)
    stored = filed(buyer, paid)
    for given in ("eva muster", "eva@customer"):
        assert given not in f"{stored.said}".casefold()
    merchant = buyer.world.stored()
    said = details.opened_said(buyer.world.services.vault, merchant, stored)
    assert (said.name, said.email) == (EVA["name"], EVA["email"])
    other = replace(stored, session=f"cs_{'9' * 22}")
    with pytest.raises(SecretUnreadable):
        details.opened_said(buyer.world.services.vault, merchant, other)


def test_it_is_filed_once_whatever_is_sent_again(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    send(buyer, paid, CONFIRMED)
    before = filed(buyer, paid)
    again = send(buyer, paid, {**CONFIRMED, "name": "Somebody Else"})
    assert again.status == 303
    assert filed(buyer, paid) == before
    assert len(outbox.letters) == 1


def test_of_two_that_are_sent_at_once_the_first_is_kept(buyer: Customer, paid: Session) -> None:
    services, merchant = buyer.world.services, buyer.world.stored()
    said = CustomerDetails(name="Eva", email="eva@customer.example")
    first, is_first = withdrawals.file(services, merchant, paid, said)
    second, is_second = withdrawals.file(services, merchant, paid, said)
    assert (is_first, is_second) == (True, False)
    assert second == first


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}]
)
def test_another_site_cannot_confirm_for_the_customer(
    buyer: Customer, paid: Session, headers: dict[str, str]
) -> None:
    answer = send(buyer, paid, CONFIRMED, headers=headers)
    assert answer.status == 403
    assert "Nothing has been done. Press the button again." in answer.page.main
    assert "Please check your statement" in answer.page.main
    assert filed(buyer, paid) is None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "Eva\u202e"}, "name"),
        ({"email": ""}, "email"),
        ({"email": "eva"}, "email"),
        ({"email": "eva@customer.example\r\nBcc: all@shop.example"}, "email"),
    ],
)
def test_what_is_missing_or_wrong_is_told_at_its_field(
    buyer: Customer, outbox: Outbox, paid: Session, wrong: dict[str, str], field: str
) -> None:
    answer = send(buyer, paid, {**CONFIRMED, **wrong})
    assert answer.status == 400
    assert answer.page.one("input", id=field).attributes["aria-invalid"] == "true"
    assert filed(buyer, paid) is None
    assert outbox.letters == []


def test_something_can_be_changed_before_it_is_confirmed(buyer: Customer, paid: Session) -> None:
    answer = send(buyer, paid, {**EVA, "change": "1"})
    assert answer.status == 200
    assert answer.page.one("input", id="name").attributes["value"] == "Eva Muster"


def test_a_field_that_is_sent_twice_is_refused(buyer: Customer, paid: Session) -> None:
    body = "name=a&name=b&email=eva%40customer.example"
    answer = buyer.ask(
        "POST",
        f"/pay/{paid.id}/withdrawal",
        content=body,
        headers={"content-type": "application/x-www-form-urlencoded", **OURS},
    )
    assert answer.status == 400


def test_the_time_ends_and_what_was_filed_stays(buyer: Customer, paid: Session) -> None:
    late = a_purchase(buyer)
    send(buyer, paid, CONFIRMED)
    buyer.world.clock.pass_time(int(timedelta(days=DAYS).total_seconds()))
    path = f"/pay/{late.id}/withdrawal"
    assert path not in buyer.open(late, "/success").page.links
    assert "The time to withdraw on this page is over." in buyer.get(path).page.main
    assert "The time to withdraw" in send(buyer, late, CONFIRMED).page.main
    assert filed(buyer, late) is None
    with pytest.raises(ResourceMissing):
        withdrawals.file(buyer.world.services, buyer.world.stored(), late, NONE_GIVEN)
    assert "has received your withdrawal" in buyer.get(f"/pay/{paid.id}/withdrawal").page.main


def test_a_shop_that_has_not_chosen_it_has_no_such_page(buyer: Customer) -> None:
    session = a_purchase(buyer)
    path = f"/pay/{session.id}/withdrawal"
    assert path not in buyer.open(session, "/success").page.links
    assert buyer.get(path).status == 404
    assert send(buyer, session, CONFIRMED).status == 404


def test_the_page_is_there_as_soon_as_the_shop_has_chosen_it(buyer: Customer) -> None:
    session = a_purchase(buyer)
    path = f"/pay/{session.id}/withdrawal"
    assert buyer.get(path).status == 404
    chosen = buyer.world.stored().changed(withdrawal_days=DAYS)
    buyer.world.core.merchants.replace(chosen)  # as another process does
    assert "You can withdraw until" in buyer.get(path).page.main
    assert send(buyer, session, CONFIRMED).status == 303
    assert filed(buyer, session) is not None


@pytest.mark.parametrize("stage", [each for each in STAGES if each != "completed"])
def test_nobody_withdraws_from_what_was_not_paid(buyer: Customer, stage: str) -> None:
    buyer.give(withdrawal_days=DAYS)
    session = buyer.put_in(stage)
    assert send(buyer, session, CONFIRMED).status == 404
    assert filed(buyer, session) is None


@pytest.mark.parametrize("sender", [True, False])
def test_it_is_filed_if_the_mail_service_refuses_and_without_any(
    buyer: Customer, outbox: Outbox, paid: Session, sender: bool
) -> None:
    outbox.broken = True
    buyer.world.services = replace(buyer.world.services, mail=outbox if sender else None)
    assert send(buyer, paid, CONFIRMED).status == 303
    assert filed(buyer, paid) is not None


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_step_is_in_the_language_of_the_page(
    buyer: Customer, outbox: Outbox, language: str
) -> None:
    buyer.give(withdrawal_days=DAYS)
    session = a_purchase(buyer, locale=language)
    pages = [buyer.get(f"/pay/{session.id}/withdrawal"), send(buyer, session, EVA)]
    send(buyer, session, CONFIRMED)
    pages.append(buyer.get(f"/pay/{session.id}/withdrawal"))
    for each in pages:
        assert f'lang="{language}"' in each.body
        assert ("withdraw" in each.page.main.casefold()) == (language == "en")
    (letter,) = outbox.letters
    assert ("withdrawal" in letter.subject) == (language == "en")


def test_an_acknowledgement_that_was_refused_is_sent_once_mail_works_again(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    outbox.broken = True
    german = {**OURS, "accept-language": "de-CH"}
    assert send(buyer, paid, CONFIRMED, headers=german).status == 303
    assert send(buyer, paid, CONFIRMED).status == 303  # again: it is filed once
    assert outbox.letters == []
    sweep_after(buyer, outbox, 1.1)
    outbox.broken = False
    sweep_after(buyer, outbox, 0.5)
    assert outbox.letters == []  # the last try was not an hour ago
    sweep_after(buyer, outbox, 0.6)
    [letter] = outbox.letters
    assert (letter.to, "Widerruf" in letter.subject) == (EVA["email"], True)
    assert "Eva Muster" in letter.text
    sweep_after(buyer, outbox, 48)
    assert len(outbox.letters) == 1
    assert filed(buyer, paid).acknowledge_at is None


def test_an_acknowledgement_that_was_sent_is_not_sent_again(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    send(buyer, paid, CONFIRMED)
    sweep_after(buyer, outbox, 2)
    assert len(outbox.letters) == 1


def test_of_two_rounds_at_once_one_acknowledges(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    outbox.broken = True
    send(buyer, paid, CONFIRMED)
    outbox.broken = False
    buyer.world.clock.pass_time(3700)
    read = filed(buyer, paid)
    services = replace(
        buyer.world.services, mail=outbox, write_acknowledgement=emails.acknowledgement
    )
    for _ in range(2):  # both have read the same record
        withdrawals.acknowledge_if_due(services, read)
    withdrawals.acknowledge_if_due(services, filed(buyer, paid))
    assert len(outbox.letters) == 1


def test_a_shop_that_answers_meanwhile_stops_no_acknowledgement_and_loses_no_mark(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    world = buyer.world

    class Slow(Outbox):
        def send(self, letter: Email) -> None:
            marks.answer(world.endpoints, world.key(), paid.id, done=True)
            outbox.send(letter)

    outbox.broken = True
    send(buyer, paid, CONFIRMED)
    outbox.broken = False
    sweep_after(buyer, Slow(), 1.1)
    assert len(outbox.letters) == 1
    assert filed(buyer, paid).answered_by is not None
    assert filed(buyer, paid).acknowledge_at is None


def test_without_a_mail_service_or_a_session_nothing_is_acknowledged(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    outbox.broken = True
    send(buyer, paid, CONFIRMED)
    buyer.world.clock.pass_time(3700)
    services, read = replace(buyer.world.services, mail=None), filed(buyer, paid)
    for write in (None, emails.acknowledgement):
        again = withdrawals.acknowledge_if_due(
            replace(services, write_acknowledgement=write), filed(buyer, paid)
        )
        assert again.acknowledge_at == buyer.world.clock.now() + timedelta(hours=1)
        buyer.world.clock.pass_time(3700)
    with pytest.raises(ResourceMissing):
        withdrawals.acknowledge_if_due(services, replace(read, session="cs_none"))


def test_an_acknowledgement_is_tried_for_two_weeks_and_never_after_an_erasure(
    buyer: Customer, outbox: Outbox, paid: Session
) -> None:
    outbox.broken = True
    send(buyer, paid, CONFIRMED)
    sweep_after(buyer, outbox, 13 * 24)
    assert filed(buyer, paid).acknowledge_at is not None
    sweep_after(buyer, outbox, 2 * 24)
    assert filed(buyer, paid).acknowledge_at is None
    other = a_purchase(buyer)
    send(buyer, other, CONFIRMED)
    record = filed(buyer, other)
    erased = replace(record, said=None, version=record.version + 1)
    assert buyer.world.services.withdrawals.put(erased, other)
    outbox.broken = False
    sweep_after(buyer, outbox, 2)
    assert outbox.letters == []
    assert filed(buyer, other).acknowledge_at is None
