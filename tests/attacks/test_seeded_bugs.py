"""Each defence is broken once: the suites of this folder must notice.

A bug is put into the product for as long as one test of a suite runs, and that test must fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest

import api.paging
import dashboard.sign_in
from checkout import clients, pages, telemetry, web
from checkout.adapters import vault
from checkout.adapters.limits import Allowances, _Times
from checkout.adapters.outbound import addresses
from checkout.adapters.passkeys import WebAuthnPasskeys
from checkout.domain import grammar, strict_json
from checkout.domain.limits import RETURN, WRONG_KEY
from checkout.domain.people import Passkey
from checkout.domain.webhooks import Delivery
from checkout.flows import cursors, idempotency, limits
from checkout.flows.merchant import sign_in
from checkout.flows.payment import approve, prepare, reconcile, sessions
from checkout.flows.payment.sealed import Grant
from checkout.flows.payment.work import Work
from checkout.flows.webhooks import delivery_log
from checkout.open_payments import answers, exchange, interaction, urls
from checkout.open_payments.client import OpenPayments
from checkout.open_payments.tokens import TokenKeeper
from checkout.open_payments.urls import authority
from dashboard import dependencies
from pay import browser
from tests.attacks import test_addresses as on_addresses
from tests.attacks import test_browsers as on_browsers
from tests.attacks import test_callbacks as on_callbacks
from tests.attacks import test_dashboard as on_dashboard
from tests.attacks import test_events as on_events
from tests.attacks import test_hostile_wallets as on_hostile_wallets
from tests.attacks import test_ids_and_cursors as on_ids
from tests.attacks import test_moved_secrets as on_moved_secrets
from tests.attacks import test_neighbours as on_neighbours
from tests.attacks import test_parser as on_parser
from tests.attacks import test_passkeys as on_passkeys
from tests.attacks import test_redirects as on_redirects
from tests.attacks import test_secrets as on_secrets
from tests.attacks import test_texts as on_texts
from tests.attacks import test_tokens as on_tokens
from tests.attacks import test_webhooks as on_webhooks
from tests.attacks.counts import Attack
from tests.attacks.doors import Doors
from tests.functions.test_api import (
    test_a_page_of_large_sessions_ends_before_lambda_refuses_it as large_pages,
)
from tests.hosted_pages import customer
from tests.merchant_api import MerchantApi
from tests.product import World

Patch = pytest.MonkeyPatch
NOTICED = (AssertionError, pytest.fail.Exception, ValueError)


def no_list(patch: Patch) -> None:
    for module in (urls, grammar, addresses):
        patch.setattr(module, "is_infrastructure", lambda host: False)


def any_text(patch: Patch) -> None:
    patch.setattr(answers.Answer, "asset_code", lambda answer: answer.name("assetCode"))


def one_token_for_all(patch: Patch) -> None:
    slot = TokenKeeper._slot

    def without(self: Any, client: Any, auth_server: str, _: str, access: Any) -> Any:
        return slot(self, client, auth_server, "", access)

    patch.setattr(TokenKeeper, "_slot", without)


def any_approval(patch: Patch) -> None:
    patch.setattr(answers, "granted_payment", lambda token, **asked: None)


def any_browser(patch: Patch) -> None:
    patch.setattr(Grant, "proves", lambda *_: True)


def one_proof_for_all(patch: Patch) -> None:
    patch.setattr(Grant, "proof", lambda *_: "0" * 32)


def any_form(patch: Patch) -> None:
    patch.setattr(browser, "asked_here", lambda request: True)


def any_event(patch: Patch) -> None:
    patch.setattr(web, "_readable", lambda event: event)


def any_place(patch: Patch) -> None:
    patch.setattr(vault, "_associated", lambda place: b"")


def pages_without_end(patch: Patch) -> None:
    patch.setattr(api.paging, "PAGE_BYTES", 10**9)


def any_link(patch: Patch) -> None:
    patch.setattr(grammar, "_problem", lambda url, base_is_http: None)


def any_approval_page(patch: Patch) -> None:
    patch.setattr(OpenPayments, "_interact_url", lambda self, interact: interact.text("redirect"))


def any_next(patch: Patch) -> None:
    patch.setattr(dashboard.sign_in, "safe_next", lambda path: path)


def names_twice(patch: Patch) -> None:
    patch.setattr(strict_json, "_object", dict)


def fields_twice(patch: Patch) -> None:
    patch.setattr(pages, "parse_qsl", lambda raw, **how: dict(parse_qsl(raw, **how)).items())


def anybodys_session(patch: Patch) -> None:
    patch.setattr(sessions, "_own", lambda services, key, found: sessions.load(services, found))


def anybodys_cursor(patch: Patch) -> None:
    patch.setattr(cursors, "_checksum", lambda merchant, position: "0" * 16)


def anybodys_answer(patch: Patch) -> None:
    patch.setattr(idempotency, "_place", lambda merchant, key: key)


def any_hash(patch: Patch) -> None:
    patch.setattr(interaction, "matches", lambda presented, **of: "grant_url")


def any_claim(patch: Patch) -> None:
    patch.setattr(Work, "paid", lambda self, session, received: True)


def any_answer(patch: Patch) -> None:
    patch.setattr(Delivery, "succeeded", property(lambda delivery: delivery.status is not None))


def any_receiver(patch: Patch) -> None:
    patch.setattr(grammar, "_webhook_problem", lambda url, allow_loopback: None)


def anybodys_event(patch: Patch) -> None:
    patch.setattr(delivery_log, "get", lambda services, merchant, found: services.events.get(found))


def any_origin(patch: Patch) -> None:
    patch.setattr(dependencies, "_require", lambda request, injected, wanted: None)


def any_form_token(patch: Patch) -> None:
    patch.setattr(dependencies, "_verify", lambda visited, presented: None)


def a_cookie_for_all(patch: Patch) -> None:
    patch.setattr(sign_in, "new_token", lambda random_bytes: "ab" * 32)


def nothing_redacted(patch: Patch) -> None:
    patch.setattr(telemetry, "session_ref", lambda session_id: session_id)
    patch.setattr(telemetry, "redacted", lambda value, name="": value)


def any_signature(patch: Patch) -> None:
    patch.setattr(WebAuthnPasskeys, "used", lambda own, answer, challenge, passkey: passkey)


def any_new_passkey(patch: Patch) -> None:
    made = Passkey(id="YQ", public_key=b"", sign_count=0)
    patch.setattr(WebAuthnPasskeys, "created", lambda own, answer, challenge: made)


def with_shop(test: Callable[..., None]) -> None:
    with on_passkeys.unlimited() as shop:
        test(shop, Attack())


def with_doors(test: Callable[..., None], *arguments: Any) -> None:
    """Try a table of attacks on doors of its own."""
    test(Doors(), Attack(), *arguments)


def with_records(test: Callable[..., None], *arguments: Any) -> None:
    """Try them on doors behind which there is something of everything."""
    test(on_dashboard.Place(Doors()), Attack(), *arguments)


def keys_counted_before_they_are_looked_up(patch: Patch) -> None:
    original = sign_in.sign_in

    def counted(services: Any, api_key: str, *, client: str) -> Any:
        limits.admit(services, WRONG_KEY, client)
        return original(services, api_key, client=client)

    patch.setattr(sign_in, "sign_in", counted)


def any_edge(patch: Patch) -> None:
    patch.setattr(clients, "proven", lambda presented, edge_secret: True)


def an_empty_secret_proves(patch: Patch) -> None:
    patch.setattr(clients, "proven", lambda given, edge_secret: given in edge_secret.split(","))


def the_first_address_named(patch: Patch) -> None:
    patch.setattr(clients, "_forwarded", lambda header, source: header.split(",")[0].strip())


def each_ipv6_address_by_itself(patch: Patch) -> None:
    patch.setattr(clients, "_V6_PREFIX", 128)


def one_limit_for_all_clients(patch: Patch) -> None:
    take = Allowances.take_shared
    patch.setattr(Allowances, "take_shared", lambda own, client: take(own, "everybody"))


def each_process_by_itself(patch: Patch) -> None:
    patch.setattr(Allowances, "take_shared", lambda *_: 0)


def any_provider_is_known(patch: Patch) -> None:
    patch.setattr(Allowances, "knows", lambda *_: True)


def refusals_forgotten(patch: Patch) -> None:
    patch.setattr(_Times, "set", lambda *_: None)


def pages_check_without_end(patch: Patch) -> None:
    patch.setattr(limits, "admits_work", lambda *_: True)


def sleeps_before_the_claim(patch: Patch) -> None:
    original = approve.finish

    def patient(services: Any, *arguments: Any, **options: Any) -> Any:
        found = original(services, *arguments, **options)
        services.clock.sleep(found.wait_seconds)
        return original(services, *arguments, **options) if found.wait_seconds else found

    patch.setattr(approve, "finish", patient)


def claims_what_it_refuses(patch: Patch) -> None:
    original = approve._claim_and_pay
    admit = limits.admit_work

    def claimed(services: Any, session: Any, *rest: Any) -> Any:
        done = original(services, session, *rest)
        provider = authority(session.customer.id)
        admit(services, RETURN, on_neighbours.HERE, provider=provider)
        return done

    patch.setattr(approve, "_claim_and_pay", claimed)
    patch.setattr(limits, "admit_work", lambda *_, **__: None)


def patient_with_submissions(patch: Patch) -> None:
    patch.setattr(prepare, "DEADLINE", timedelta(seconds=24))


def patient_with_documents(patch: Patch) -> None:
    patch.setattr(exchange, "DOCUMENT", 10.0)


def patient_pages(patch: Patch) -> None:
    patch.setattr(reconcile, "PAGE_DEADLINE", reconcile.DEADLINE)


def one_task_after_the_other(patch: Patch) -> None:
    async def inline(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    patch.setattr(asyncio, "to_thread", inline)


def with_customer(test: Callable[..., None], *arguments: Any) -> None:
    with customer() as attacker:
        test(attacker, *arguments)


def with_place(test: Callable[..., None], *arguments: Any) -> None:
    with ExitStack() as entered:
        test(on_events.Place(entered), *arguments)


AZURE = "168.63.129.16"
BUGS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (no_list, lambda: on_addresses.test_no_customer_is_redirected_there(AZURE)),
    (no_list, lambda: on_addresses.test_what_was_saved_before_is_not_used(AZURE)),
    (
        no_list,
        lambda: on_addresses.test_a_name_that_resolves_there_is_refused_when_saved_and_when_used(
            AZURE, allow_loopback=False
        ),
    ),
    (any_text, lambda: on_texts.test_an_asset_code_is_letters_and_digits("<b>")),
    (
        one_token_for_all,
        lambda: on_tokens.test_a_stranger_gets_no_kept_token_and_renews_none(
            World(), "customer", 401, on_tokens.INACTIVE
        ),
    ),
    (
        any_approval,
        lambda: on_tokens.test_an_approval_for_another_payment_is_not_used(World(), "receiver"),
    ),
    (
        any_browser,
        lambda: with_customer(
            on_browsers.test_another_browser_is_shown_what_is_paid_and_to_whom_and_pays_nothing
        ),
    ),
    (
        one_proof_for_all,
        lambda: with_customer(on_browsers.test_a_cookie_that_proves_nothing_is_asked, "the link's"),
    ),
    (
        any_form,
        lambda: with_customer(on_browsers.test_a_form_of_another_site_is_asked_again, "cross-site"),
    ),
    (
        any_event,
        lambda: with_place(on_events.test_a_host_that_is_none_is_a_400, "api", "a:b:c"),
    ),
    (any_place, lambda: on_moved_secrets.test_another_sessions_grant_opens_nowhere_else()),
    (pages_without_end, lambda: large_pages(MerchantApi(), "😀")),
    (any_link, lambda: with_doors(on_redirects.test_no_session_leads_there, "cancel_url")),
    (
        any_approval_page,
        lambda: with_doors(on_redirects.test_no_customer_is_led_to_such_an_approval),
    ),
    (any_next, lambda: with_doors(on_redirects.test_a_sign_in_leads_nowhere_else)),
    (names_twice, lambda: with_doors(on_parser.test_no_session_is_made_of_such_a_body)),
    (fields_twice, lambda: with_doors(on_parser.test_no_wallet_is_asked_for_such_a_form)),
    (
        anybodys_session,
        lambda: with_doors(on_ids.test_another_merchants_session_is_missing_at_every_stage, "open"),
    ),
    (anybodys_cursor, lambda: with_doors(on_ids.test_no_other_merchants_cursor_is_taken)),
    (anybodys_answer, lambda: with_doors(on_ids.test_no_key_replays_another_merchants_answer)),
    (any_hash, lambda: with_doors(on_callbacks.test_no_other_hash_is_taken)),
    (
        any_claim,
        lambda: on_hostile_wallets.test_a_payment_that_was_only_claimed_completes_nothing(
            Attack(), 201
        ),
    ),
    (
        any_answer,
        lambda: with_doors(on_webhooks.test_no_receiver_changes_anything_but_its_own_event),
    ),
    (any_receiver, lambda: with_doors(on_webhooks.test_no_address_elsewhere_is_saved)),
    (anybodys_event, lambda: with_doors(on_dashboard.test_no_path_leads_to_anothers_records)),
    (
        any_origin,
        lambda: with_records(on_dashboard.test_no_form_of_another_site_is_taken, "/keys"),
    ),
    (
        any_form_token,
        lambda: with_records(on_dashboard.test_no_form_without_its_own_token_is_taken, "/keys"),
    ),
    (
        a_cookie_for_all,
        lambda: with_doors(on_dashboard.test_a_planted_cookie_is_worth_nothing_after_the_sign_in),
    ),
    (any_signature, lambda: with_shop(on_passkeys.test_no_forged_answer_signs_in)),
    (any_new_passkey, lambda: with_shop(on_passkeys.test_no_forged_answer_makes_a_member)),
    (
        keys_counted_before_they_are_looked_up,
        lambda: on_neighbours.test_a_thousand_wrong_keys_do_not_keep_the_right_one_out(1),
    ),
    (
        any_edge,
        lambda: on_neighbours.test_a_header_is_not_believed_without_the_edges_proof(
            {"x-forwarded-for": on_neighbours.HERE}
        ),
    ),
    (
        any_edge,
        on_neighbours.test_a_client_that_invents_addresses_is_limited_as_what_it_is,
    ),
    (
        an_empty_secret_proves,
        lambda: on_neighbours.test_no_edge_is_proven_by_a_secret_that_is_not_set("", ""),
    ),
    (
        the_first_address_named,
        on_neighbours.test_a_proven_edge_names_the_client_whatever_the_client_said_before,
    ),
    (
        each_ipv6_address_by_itself,
        lambda: on_neighbours.test_an_ipv6_client_is_its_network(
            "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"
        ),
    ),
    (one_limit_for_all_clients, on_neighbours.test_another_client_pays_meanwhile),
    (
        each_process_by_itself,
        on_neighbours.test_a_client_with_many_submissions_is_refused_and_nothing_is_done,
    ),
    (
        any_provider_is_known,
        on_neighbours.test_a_provider_that_is_not_known_or_not_any_more_is_counted_from_the_first_time,
    ),
    (
        refusals_forgotten,
        on_neighbours.test_a_flood_of_submissions_costs_one_write_a_window,
    ),
    (
        pages_check_without_end,
        on_neighbours.test_pages_of_payments_in_doubt_leave_the_checks_to_the_sweep_beyond_the_limit,
    ),
    (
        sleeps_before_the_claim,
        on_neighbours.test_copies_of_a_callback_hold_no_process_while_the_wallet_wants_time,
    ),
    (claims_what_it_refuses, on_neighbours.test_a_return_that_is_refused_is_not_lost),
    (
        patient_with_submissions,
        lambda: on_neighbours.test_a_submission_ends_in_time_whatever_the_wallet_does(
            "/quotes", 1e9, 12
        ),
    ),
    (
        patient_with_documents,
        lambda: on_neighbours.test_a_submission_ends_in_time_whatever_the_wallet_does(
            "/alice", 1e9, 3.5
        ),
    ),
    (patient_pages, on_neighbours.test_a_page_waits_for_a_hanging_wallet_for_a_bounded_time),
    (
        one_task_after_the_other,
        lambda: on_neighbours.test_a_wallet_that_hangs_delays_no_other_clean_up_of_its_batch(2),
    ),
]


@pytest.mark.parametrize(
    ("bug", "attack"),
    BUGS,
    ids=[f"{number}-{bug.__name__}" for number, (bug, _) in enumerate(BUGS)],
)
def test_a_broken_defence_is_noticed(
    monkeypatch: Patch, bug: Callable[[Patch], None], attack: Callable[[], None]
) -> None:
    attack()
    bug(monkeypatch)
    with pytest.raises(NOTICED):
        attack()


def test_a_life_whose_lines_are_not_redacted_is_noticed(
    monkeypatch: Patch, told: on_secrets.Told
) -> None:
    life = on_secrets.Life(monkeypatch, told)
    nothing_redacted(monkeypatch)
    life.purchase("alice")
    assert ("session id", "log") in life.scan().leaks
