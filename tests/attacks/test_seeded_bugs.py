"""Each defence is broken once: the suites of this folder must notice.

A bug is put into the product for as long as one test of a suite runs, and that test must fail.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest

import api.paging
import dashboard.sign_in
from api.v1 import forms
from checkout import clients, pages, telemetry, web
from checkout.adapters import instrumented, passkeys, vault
from checkout.adapters import limits as allowances
from checkout.adapters.dynamo import DynamoApiKeys, DynamoCounters
from checkout.adapters.limits import Allowances, _Times
from checkout.adapters.outbound import addresses
from checkout.adapters.passkeys import WebAuthnPasskeys
from checkout.domain import grammar, strict_json
from checkout.domain.limits import RETURN, WRONG_KEY
from checkout.domain.merchant import ApiKey
from checkout.domain.people import Passkey, Scope
from checkout.domain.session import Session
from checkout.domain.webhooks import Delivery
from checkout.flows import cursors, idempotency, limits
from checkout.flows.checkout import approve, lookup, prepare, reconcile
from checkout.flows.merchant import api_keys, authentication, people, sign_in
from checkout.flows.payment import proof
from checkout.flows.payment.sealed import Grant
from checkout.flows.webhooks import delivery_log
from checkout.open_payments import (
    answers,
    client,
    exchange,
    interaction,
    reasons,
    signatures,
    slips,
    urls,
)
from checkout.open_payments.client import OpenPayments
from checkout.open_payments.errors import Reason
from checkout.open_payments.tokens import TokenKeeper
from checkout.open_payments.urls import authority
from dashboard import dependencies, export
from pay import browser, letters, routes
from sandbox import guarded_emulator
from sandbox.cloud import table_definitions
from tests.adapters import test_api_keys as of_keys
from tests.attacks import test_addresses as on_addresses
from tests.attacks import test_browsers as on_browsers
from tests.attacks import test_callbacks as on_callbacks
from tests.attacks import test_dashboard as on_dashboard
from tests.attacks import test_events as on_events
from tests.attacks import test_growth as on_growth
from tests.attacks import test_hostile_wallets as on_hostile_wallets
from tests.attacks import test_ids_and_cursors as on_ids
from tests.attacks import test_moved_secrets as on_moved_secrets
from tests.attacks import test_neighbours as on_neighbours
from tests.attacks import test_parser as on_parser
from tests.attacks import test_passkeys as on_passkeys
from tests.attacks import test_redirects as on_redirects
from tests.attacks import test_refunds as on_refunds
from tests.attacks import test_secrets as on_secrets
from tests.attacks import test_texts as on_texts
from tests.attacks import test_tokens as on_tokens
from tests.attacks import test_webhooks as on_webhooks
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.flows.checkout import test_purchase as in_purchase
from tests.flows.merchant import test_authentication as in_authentication
from tests.functions import test_dashboard_export as in_export
from tests.functions import test_dashboard_keys as in_keys
from tests.functions import test_dashboard_people as in_people
from tests.functions import test_dashboard_transactions as in_transactions
from tests.functions import test_pay_receipts as in_receipts
from tests.functions import test_stripe as in_stripe
from tests.functions.test_api import (
    test_a_page_of_large_sessions_ends_before_lambda_refuses_it as large_pages,
)
from tests.open_payments import test_reasons as in_reasons
from tests.open_payments import test_signatures as in_signatures
from tests.open_payments import test_wallet_address as in_addresses
from tests.sandbox import test_guarded_emulator as on_emulator
from tests.support import services
from tests.support.attack_counts import Attack
from tests.support.dashboard_pages import dashboard as a_dashboard
from tests.support.dashboard_pages import dashboard_of
from tests.support.doors import Doors
from tests.support.flows import PREFIX, World
from tests.support.hosted_pages import customer
from tests.support.merchant_api import MerchantApi
from tests.support.outbox import Outbox
from tests.support.refund_books import fund
from tests.support.stores import Store, new_store
from tests.support.stripe_api import StripeApi
from tests.template import test_template as of_template

pytestmark = pytest.mark.untraced

Patch = pytest.MonkeyPatch
NOTICED = (AssertionError, pytest.fail.Exception, ValueError)


def no_list(patch: Patch) -> None:
    for module in (urls, grammar, addresses):
        patch.setattr(module, "is_infrastructure", lambda host: False)


def any_text(patch: Patch) -> None:
    patch.setattr(answers.Answer, "asset_code", lambda answer: answer.name("assetCode"))


def one_token_for_all(patch: Patch) -> None:
    slot = TokenKeeper._slot

    def without(self: Any, client: Any, auth_server: str, _: str, access: Any, wallet: Any) -> Any:
        return slot(self, client, auth_server, "", access, wallet)

    patch.setattr(TokenKeeper, "_slot", without)


def any_approval(patch: Patch) -> None:
    patch.setattr(answers, "granted_payment", lambda token, **asked: None)


def any_browser(patch: Patch) -> None:
    patch.setattr(Grant, "proves", lambda *_: True)


def one_proof_for_all(patch: Patch) -> None:
    patch.setattr(Grant, "proof", lambda *_: "0" * 32)


def any_form(patch: Patch) -> None:
    patch.setattr(browser, "asked_here", lambda services, request: True)


def any_opener(patch: Patch) -> None:
    patch.setattr(browser, "_opened_by_customer", lambda request: True)


def only_other_sites_refused(patch: Patch) -> None:
    cross = "cross-site"
    patch.setattr(
        browser,
        "_opened_by_customer",
        lambda request: request.headers.get("sec-fetch-site") != cross,
    )


def any_origin_of_old_browsers(patch: Patch) -> None:
    patch.setattr(browser, "_is_own", lambda services, origin: True)


def invitations_outlive_their_sender(patch: Patch) -> None:
    patch.setattr(people, "inviter_owns", lambda services, invitation: True)
    patch.setattr(people, "_end_invitations", lambda *_: None)


def any_scope(patch: Patch) -> None:
    patch.setattr(api_keys, "given", lambda actor: frozenset(Scope))


def writing_manages(patch: Patch) -> None:
    patch.setattr(authentication, "_WRITING", Anything())


def keys_outlive_their_maker(patch: Patch) -> None:
    patch.setattr(ApiKey, "lasts_until", None)


def left_keys_are_hidden(patch: Patch) -> None:
    patch.setattr(people, "_gives", lambda maker, key: True)


def frames_of_others(patch: Patch) -> None:
    patch.setattr(passkeys, "_require_here", lambda client_data: None)


def ids_of_any_length(patch: Patch) -> None:
    patch.setattr(passkeys, "_ID_MAX", 10**6)


def line_ends(patch: Patch) -> None:
    patch.setattr(grammar, "_LINE_END", re.compile("(?!)"))


def signs_by_their_first_character(patch: Patch) -> None:
    patch.setattr(
        export, "_safe", lambda value: f"'{value}" if str(value).startswith(("=", "+")) else value
    )


def too_fast_is_busy(patch: Patch) -> None:
    patch.setattr(reasons, "_GRANTS", frozenset())


def keys_of_one_reading(patch: Patch) -> None:
    def beside_each_other(own: Any, key: ApiKey, merchant: Any) -> bool:
        return bool(own._written(own._as_read(merchant), own._new(key)))

    patch.setattr(DynamoApiKeys, "add", beside_each_other)


def any_key_file(patch: Patch) -> None:
    patch.setattr(signatures, "_require_one_key", lambda pem: None)
    patch.setattr(signatures, "_require_random", lambda raw: None)


def addresses_in_place_of_names(patch: Patch) -> None:
    patch.setattr(client, "is_address", lambda host: False)


def more_than_asked_is_silent(patch: Patch) -> None:
    patch.setattr(Session, "overpaid", False)


def the_whole_id_in_a_receipt(patch: Patch) -> None:
    patch.setattr(letters, "session_ref", lambda session_id: session_id)


def numbers_in_many_forms(patch: Patch) -> None:
    patch.setattr(forms, "_INDEX", re.compile("-?[0-9e]{1,6}"))


def the_edges_address_as_often_as_it_stands(patch: Patch) -> None:
    def forwarded(header: str, source: str) -> str:
        named = [part.strip() for part in header.split(",")]
        return next((each for each in reversed(named) if each != source), source)

    patch.setattr(clients, "_forwarded", forwarded)


def any_row_of_the_table(patch: Patch) -> None:
    [policy] = of_template.FUNCTIONS["PayFunction"]["Policies"]
    for statement in policy["Statement"]:
        if statement["Sid"] == "VisitsAndCounters":
            patch.delitem(statement, "Condition")


def pages_of_any_site(patch: Patch) -> None:
    patch.setattr(guarded_emulator, "_BROWSERS", ())


class Anything:
    """Contains whatever is asked for."""

    def __contains__(self, _: object) -> bool:
        return True


def with_signed_in(test: Callable[..., None], *arguments: Any) -> None:
    with a_dashboard() as shop:
        test(shop, shop.signed_in(), *arguments)


def with_dashboard(test: Callable[..., None], *arguments: Any) -> None:
    with a_dashboard() as shop:
        test(shop, *arguments)


def repeats_that_overlap(patch: Patch) -> None:
    slow = r"[^\s@/:]+@[^\s@/:]+|[^/]*[^\s@/<]+@[^\s@/>]+\.[^/]+"
    patch.setattr(slips, "_EMAIL", re.compile(slow, re.DOTALL))


def any_length(patch: Patch) -> None:
    patch.setattr(slips, "MAX_URL", 10**9)


def names_in_many_places(patch: Patch) -> None:
    patch.setattr(routes, "address_of", lambda form, typed: form.replace("{name}", typed))
    patch.setattr(routes, "provider_of", lambda fields: fields.pop("provider", ""))


def growing(alphabet: str, length: int) -> None:
    """Try one length of an alphabet in the form of the hosted page."""
    place, field = on_growth.Place(Doors()), "wallet_address, form"
    on_growth.WALLET[field](place, "a")
    on_growth.cost(on_growth.WALLET[field], place, on_growth.ALPHABETS[alphabet](length), length)


def multiplied() -> None:
    place, send = on_growth.Place(Doors()), on_growth.WALLET["provider and wallet_address"]
    send(place, "a")
    on_growth.weigh(send, place, 16_384)


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
    patch.setattr(lookup, "own", lambda services, key, found: lookup.load(services, found))


def anybodys_cursor(patch: Patch) -> None:
    patch.setattr(cursors, "_checksum", lambda merchant, position: "0" * 16)


def anybodys_answer(patch: Patch) -> None:
    patch.setattr(idempotency, "_place", lambda merchant, key: key)


def any_hash(patch: Patch) -> None:
    patch.setattr(interaction, "matches", lambda presented, **of: "grant_url")


def any_claim(patch: Patch) -> None:
    patch.setattr(proof, "enough", lambda visit, record, received: True)


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
    patch.setattr(instrumented, "session_ref", lambda session_id: session_id)
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


def lists_without_end(patch: Patch) -> None:
    patch.setattr(limits, "admit_list", lambda *_: None)


def one_limit_for_all_merchants(patch: Patch) -> None:
    take = Allowances.take_list
    patch.setattr(Allowances, "take_list", lambda own, merchant: take(own, "everybody"))
    patch.setattr(Allowances, "take", lambda *_: 1)


def lists_of_each_process(patch: Patch) -> None:
    patch.setattr(DynamoCounters, "attempt", lambda *_, **__: True)


def as_much_as_is_left(patch: Patch) -> None:
    patch.setattr(allowances, "LEFT_SHARE", 1)


def paid_items_count(patch: Patch) -> None:
    patch.setattr(Allowances, "give_items", lambda *_: None)


def with_stock(test: Callable[..., None]) -> None:
    world = World()
    allowed = services.limits(world.core.clock, world.dynamo, PREFIX, 30)
    world.services = replace(world.services, limits=allowed)
    test(world)


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


def opened_by(case: str) -> None:
    with customer() as attacker, Patch.context() as patch:
        on_browsers.test_a_link_that_another_site_opens_hands_nothing_over(attacker, patch, case)


def with_keys(test: Callable[[Store], None]) -> None:
    store = new_store(InMemoryDynamoDb(table_definitions("test")), "test")
    store.merchants.add(of_keys.MERCHANT, of_keys.FIRST)
    test(store)


def key_file(case: str) -> None:
    in_signatures.test_a_file_with_two_keys_or_with_one_byte_repeated_is_refused(case)


def receipt() -> None:
    outbox, world = Outbox(), World()
    world.services = replace(world.services, mail=outbox)
    with customer(world) as buyer:
        in_receipts.test_a_receipt_is_sent_once_with_the_order_number_first(buyer, outbox)


AZURE = "168.63.129.16"
V1 = on_neighbours.LISTS[-1]


def refunds_need_no_right(patch: Patch) -> None:
    patch.setattr(authentication, "_REFUNDING", ())
    patch.setattr(authentication, "_WRITING", Anything())


def with_refunds(test: Callable[..., None]) -> None:
    test(on_refunds.Shop(), Attack())


def with_refund_pages(test: Callable[..., None]) -> None:
    world = World()
    fund(world)
    with dashboard_of(world) as owner:
        test(world, owner, Attack())


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
    (any_opener, lambda: opened_by("another site")),
    (only_other_sites_refused, lambda: opened_by("a site of the same domain")),
    (
        any_origin_of_old_browsers,
        lambda: with_customer(
            on_browsers.test_a_form_of_another_origin_is_asked_again,
            "https://evil.example",
        ),
    ),
    (
        invitations_outlive_their_sender,
        lambda: with_dashboard(in_people.test_an_invitation_ends_with_its_senders_rights, "revoke"),
    ),
    (
        any_scope,
        lambda: with_dashboard(
            in_people.test_a_developer_gives_no_key_what_they_may_not_do, "full"
        ),
    ),
    (
        writing_manages,
        lambda: in_authentication.test_a_route_needs_one_scope(
            Scope.MANAGE, in_authentication.MANAGES
        ),
    ),
    (
        left_keys_are_hidden,
        lambda: with_dashboard(
            in_people.test_the_keys_of_a_member_who_may_no_more_are_shown_to_the_owners, "role"
        ),
    ),
    (frames_of_others, lambda: with_shop(on_passkeys.test_no_forged_answer_makes_a_member)),
    (
        ids_of_any_length,
        lambda: with_dashboard(
            on_passkeys.test_a_passkey_with_an_id_of_no_length_that_there_is_makes_no_member, 5000
        ),
    ),
    (line_ends, lambda: with_doors(on_redirects.test_no_session_leads_there, "cancel_url")),
    (
        signs_by_their_first_character,
        lambda: with_signed_in(in_export.test_a_formula_comes_out_as_text, "＝1"),
    ),
    (
        too_fast_is_busy,
        lambda: in_reasons.test_answers_that_were_not_recorded_fall_to_the_nearest_row(
            "continue_grant", 429, "too_fast", "", Reason.TOO_FAST
        ),
    ),
    (
        keys_outlive_their_maker,
        lambda: with_signed_in(in_keys.test_a_key_with_an_end_makes_none_that_outlives_it),
    ),
    (
        keys_of_one_reading,
        lambda: with_keys(of_keys.test_of_two_keys_that_were_counted_for_at_once_one_is_added),
    ),
    (any_key_file, lambda: key_file("two keys")),
    (any_key_file, lambda: key_file("zeros")),
    (
        addresses_in_place_of_names,
        lambda: with_doors(on_redirects.test_no_customer_is_led_to_such_an_approval),
    ),
    (
        more_than_asked_is_silent,
        lambda: with_signed_in(
            in_transactions.test_money_beyond_the_price_is_flagged_with_what_to_do
        ),
    ),
    (the_whole_id_in_a_receipt, receipt),
    (
        numbers_in_many_forms,
        lambda: in_stripe.test_an_item_has_one_number_written_in_one_way(StripeApi(), "00"),
    ),
    (
        the_edges_address_as_often_as_it_stands,
        on_neighbours.test_an_address_of_the_edge_that_stands_twice_is_the_clients,
    ),
    (
        any_row_of_the_table,
        lambda: of_template.test_neither_api_nor_page_reads_or_writes_a_sign_in_or_a_challenge(
            "PayFunction"
        ),
    ),
    (
        pages_of_any_site,
        lambda: on_emulator.test_all_others_are_refused_and_the_emulator_is_not_asked(
            method="POST", case="another site"
        ),
    ),
    (repeats_that_overlap, lambda: growing("e-mail", 2048)),
    (any_length, in_addresses.test_a_text_that_grows_beyond_the_limit_is_too_long),
    (names_in_many_places, multiplied),
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
    *(
        (bug, lambda: on_neighbours.test_a_merchant_with_many_lists_is_refused_and_no_other(*V1))
        for bug in (lists_without_end, one_limit_for_all_merchants, lists_of_each_process)
    ),
    (
        as_much_as_is_left,
        lambda: with_stock(in_purchase.test_a_few_clients_leave_something_for_the_others),
    ),
    (
        paid_items_count,
        lambda: with_stock(in_purchase.test_an_item_that_was_paid_does_not_count),
    ),
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
        refunds_need_no_right,
        lambda: with_refunds(on_refunds.test_a_key_without_the_right_refunds_nothing),
    ),
    (
        anybodys_session,
        lambda: with_refunds(on_refunds.test_nobody_refunds_or_reads_what_is_a_neighbours),
    ),
    (
        any_hash,
        lambda: with_refund_pages(
            on_refunds.test_a_callback_that_is_forged_or_anothers_sends_nothing
        ),
    ),
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
