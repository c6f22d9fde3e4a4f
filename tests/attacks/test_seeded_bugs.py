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
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl

import pytest

import api.http
import dashboard.sign_in
from api.v1 import forms
from checkout import client_address, pages, telemetry, web
from checkout.adapters import instrumented, passkeys, vault
from checkout.adapters import limits as allowances
from checkout.adapters.dynamo import DynamoApiKeys, DynamoCounters
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.adapters.limits import Allowances, _Times
from checkout.adapters.passkeys import WebAuthnPasskeys
from checkout.domain.ground import grammar, names, strict_json, typed_address
from checkout.domain.ground.limits import RETURN, WRONG_KEY
from checkout.domain.merchant import reach
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Passkey, Scope, SignUp
from checkout.domain.merchant.reach import Standing
from checkout.domain.merchant.record import ApiKey
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import Delivery
from checkout.flows import cursors, erase, idempotency, limits
from checkout.flows.merchant import api_keys
from checkout.flows.payment import proof
from checkout.flows.payment.sealed import Grant
from checkout.flows.people import people, sign_in
from checkout.flows.refund import request as refund_request
from checkout.flows.session import approve, lookup, prepare, reconcile
from checkout.flows.webhooks import deliver, endpoints, event_log
from dashboard import dependencies, reports
from open_payments import (
    answers,
    exchange,
    interaction,
    protocol,
    signatures,
    urls,
    wallet_address,
)
from open_payments.errors import Reason
from open_payments.protocol import OpenPayments
from open_payments.tokens import TokenKeeper
from open_payments.transports import addresses
from open_payments.urls import authority
from pay import browser, emails, routes
from sandbox import guarded_emulator
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support import services
from tests.support.attack_counts import Attack
from tests.support.dashboard_pages import dashboard as a_dashboard
from tests.support.dashboard_pages import dashboard_of, dashboard_over
from tests.support.doors import Doors
from tests.support.flows import PREFIX, World
from tests.support.hosted_pages import customer
from tests.support.merchant_api import MerchantApi
from tests.support.outbox import Outbox
from tests.support.refund_books import fund
from tests.support.stores import Store, new_store
from tests.support.stripe_api import StripeApi

pytestmark = pytest.mark.untraced

Patch = pytest.MonkeyPatch
NOTICED = (AssertionError, pytest.fail.Exception, ValueError)


def no_list(patch: Patch) -> None:
    for module in (urls, grammar, addresses):
        patch.setattr(module, "is_infrastructure", lambda host: False)


def one_token_for_all(patch: Patch) -> None:
    slot = TokenKeeper._slot

    def without(self: Any, client: Any, auth_server: str, _: str, access: Any, wallet: Any) -> Any:
        return slot(self, client, auth_server, "", access, wallet)

    patch.setattr(TokenKeeper, "_slot", without)


def only_other_sites_refused(patch: Patch) -> None:
    cross = "cross-site"
    patch.setattr(
        browser,
        "_opened_by_customer",
        lambda request: request.headers.get("sec-fetch-site") != cross,
    )


def invitations_outlive_their_sender(patch: Patch) -> None:
    patch.setattr(people, "inviter_owns", lambda services, invitation: True)
    patch.setattr(people, "_end_invitations", lambda *_: None)


def keys_of_one_reading(patch: Patch) -> None:
    def beside_each_other(own: Any, key: ApiKey, merchant: Any) -> bool:
        items = {"merchant": own._as_read(merchant), "key": own._new(key)}
        return bool(own._written(items))

    patch.setattr(DynamoApiKeys, "add", beside_each_other)


def any_key_file(patch: Patch) -> None:
    patch.setattr(signatures, "_require_one_key", lambda pem: None)
    patch.setattr(signatures, "_require_random", lambda raw: None)


def the_edges_address_as_often_as_it_stands(patch: Patch) -> None:
    def forwarded(header: str, source: str) -> str:
        named = [part.strip() for part in header.split(",")]
        return next((each for each in reversed(named) if each != source), source)

    patch.setattr(client_address, "_forwarded", forwarded)


def any_row_of_the_table(patch: Patch) -> None:
    [policy] = named("template/test_template::FUNCTIONS")["PayFunction"]["Policies"]
    for statement in policy["Statement"]:
        if statement["Sid"] == "VisitsAndCounters":
            patch.delitem(statement, "Condition")


def named(name: str) -> Any:
    """Return a test, or what stands beside it, by its id: "attacks/test_texts::test_it"."""
    module, _, wanted = name.partition("::")
    of_the_client = module.startswith("open_payments/")  # beside the package
    path = module.rpartition("/")[2] if of_the_client else f"tests.{module.replace('/', '.')}"
    return getattr(import_module(path), wanted)


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
    patch.setattr(typed_address, "_EMAIL", re.compile(slow, re.DOTALL))


def names_in_many_places(patch: Patch) -> None:
    patch.setattr(routes, "address_of", lambda form, typed: form.replace("{name}", typed))
    patch.setattr(routes, "provider_of", lambda fields: fields.pop("provider", ""))


def growing(cost: Callable[..., Any], alphabet: str, length: int) -> None:
    """Try one length of an alphabet in the form of the hosted page."""
    place, field = named("attacks/test_growth::Place")(Doors()), "wallet_address, form"
    send = named("attacks/test_growth::WALLET")[field]
    send(place, "a")
    cost(send, place, named("attacks/test_growth::ALPHABETS")[alphabet](length), length)


def multiplied(weigh: Callable[..., Any]) -> None:
    place = named("attacks/test_growth::Place")(Doors())
    send = named("attacks/test_growth::WALLET")["provider and wallet_address"]
    send(place, "a")
    weigh(send, place, 16_384)


def nothing_redacted(patch: Patch) -> None:
    patch.setattr(instrumented, "session_ref", lambda session_id: session_id)
    patch.setattr(telemetry, "redacted", lambda value, name="": value)


def any_new_passkey(patch: Patch) -> None:
    made = Passkey(id="YQ", public_key=b"", sign_count=0)
    patch.setattr(WebAuthnPasskeys, "created", lambda own, answer, challenge: made)


def given(kind: Callable[[], Any]) -> Callable[..., None]:
    """Return a setting in which the test is given one of these, and what else it asks for."""
    return lambda test, *arguments: test(kind(), *arguments)


def with_shop(test: Callable[..., None]) -> None:
    with named("attacks/test_passkeys::unlimited")() as shop:
        test(shop, Attack())


def with_doors(test: Callable[..., None], *arguments: Any) -> None:
    """Try a table of attacks on doors of its own."""
    test(Doors(), Attack(), *arguments)


def with_records(test: Callable[..., None], *arguments: Any) -> None:
    """Try them on doors behind which there is something of everything."""
    test(named("attacks/test_dashboard::Place")(Doors()), Attack(), *arguments)


def keys_counted_before_they_are_looked_up(patch: Patch) -> None:
    original = sign_in.sign_in

    def counted(services: Any, api_key: str, *, client: str) -> Any:
        limits.admit(services, WRONG_KEY, client)
        return original(services, api_key, client=client)

    patch.setattr(sign_in, "sign_in", counted)


def one_limit_for_all_clients(patch: Patch) -> None:
    take = Allowances.take_shared
    patch.setattr(Allowances, "take_shared", lambda own, client: take(own, "everybody"))


def one_limit_for_all_merchants(patch: Patch) -> None:
    take = Allowances.take_list
    patch.setattr(Allowances, "take_list", lambda own, merchant: take(own, "everybody"))
    patch.setattr(Allowances, "take", lambda *_: 1)


def with_stock(test: Callable[..., None]) -> None:
    world = World()
    allowed = services.limits(world.core.clock, world.dynamo, PREFIX, 30)
    world.services = replace(world.services, limits=allowed)
    test(world)


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
        admit(services, RETURN, named("attacks/test_neighbours::HERE"), provider=provider)
        return done

    patch.setattr(approve, "_claim_and_pay", claimed)
    patch.setattr(limits, "admit_work", lambda *_, **__: None)


def one_task_after_the_other(patch: Patch) -> None:
    async def inline(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    patch.setattr(asyncio, "to_thread", inline)


def with_customer(test: Callable[..., None], *arguments: Any) -> None:
    with customer() as attacker:
        test(attacker, *arguments)


def with_patched_customer(test: Callable[..., None], case: str) -> None:
    with customer() as attacker, Patch.context() as patch:
        test(attacker, patch, case)


def with_keys(test: Callable[[Store], None]) -> None:
    store = new_store(InMemoryDynamoDb(table_definitions("test")), "test")
    store.merchants.add(
        named("adapters/test_api_keys::MERCHANT"), named("adapters/test_api_keys::FIRST")
    )
    test(store)


def with_outbox(test: Callable[..., None]) -> None:
    outbox, world = Outbox(), World()
    world.services = replace(world.services, mail=outbox)
    with customer(world) as buyer:
        test(buyer, outbox)


def with_place(test: Callable[..., None], *arguments: Any) -> None:
    with ExitStack() as entered:
        test(named("attacks/test_events::Place")(entered), *arguments)


def by_an_earlier_browser(test: Callable[..., None]) -> None:
    test(named("attacks/test_details::began_an_earlier_attempt"))


AZURE = "168.63.129.16"
V1 = named("attacks/test_neighbours::LISTS")[-1]


class OneScope:
    """A table of doors that all need the scope to write."""

    def get(self, _: object) -> Door[Scope]:
        return Door(Scope.WRITE, "")


def with_refunds(test: Callable[..., None]) -> None:
    test(named("attacks/test_refunds::Shop")(), Attack())


def with_refund_pages(test: Callable[..., None]) -> None:
    world = World()
    fund(world)
    with dashboard_of(world) as owner:
        test(world, owner, Attack())


def with_sign_up(test: Callable[..., None], *, world: bool = False) -> None:
    place = World()
    free = services.limits(place.clock, place.dynamo, PREFIX, 0)
    wallets = place.services.wallets
    more: dict[str, Any] = {"limits": free, "wallets": lambda: wallets}
    with dashboard_over(place, sign_up=SignUp.OPEN, **more) as shop:
        test(*([place] if world else []), shop, Attack())


# By the name of the bug: whose attribute it is, its name, and what is in its place.
BROKEN: dict[str, tuple[Any, str, Any]] = {
    "any_text": (answers.Answer, "asset_code", lambda answer: answer.name("assetCode")),
    "any_approval": (answers, "granted_payment", lambda token, **asked: None),
    "any_browser": (Grant, "proves", lambda *_: True),
    "one_proof_for_all": (Grant, "proof", lambda *_: "0" * 32),
    "any_form": (browser, "asked_here", lambda services, request: True),
    "details_for_everybody": (browser, "has_paid", lambda *_: True),
    "withdrawals_for_everybody": (browser, "has_filed", lambda *_: True),
    "one_proof_for_all_attempts": (browser, "_attempt", lambda number: "attempt"),
    "withdrawals_are_passed_over": (DynamoRecords, "withdrawals", lambda records: iter(())),
    "answers_are_nobodys": (erase, "_erase_answer", lambda *_, **__: None),
    "any_opener": (browser, "_opened_by_customer", lambda request: True),
    "any_origin_of_old_browsers": (browser, "_is_own", lambda services, origin: True),
    "any_scope": (api_keys, "given", lambda actor: frozenset(Scope)),
    "limits_at_the_request_only": (refund_request, "require_own", lambda key, refund: None),
    "keys_move_money_by_signing_in": (ApiKey, "moves_money", True),
    "details_to_any_address": (endpoints, "_set_by", lambda services, key: {}),
    "writing_does_all": (api_keys, "API", OneScope()),
    "keys_outlive_their_maker": (ApiKey, "lasts_until", None),
    "left_keys_are_hidden": (people, "_gives", lambda maker, key: True),
    "frames_of_others": (passkeys, "_require_here", lambda client_data: None),
    "ids_of_any_length": (passkeys, "_ID_MAX", 10**6),
    "line_ends": (grammar, "_LINE_END", re.compile("(?!)")),
    "signs_by_their_first_character": (
        reports,
        "_safe",
        lambda value: f"'{value}" if str(value).startswith(("=", "+")) else value,
    ),
    "too_fast_is_busy": (exchange, "_GRANTS", ()),
    "addresses_in_place_of_names": (protocol, "is_address", lambda host: False),
    "more_than_asked_is_silent": (Session, "overpaid", False),
    "the_whole_id_in_a_receipt": (
        emails,
        "_facts",
        lambda shown, facts=emails._facts: [*facts(shown), ("Reference", shown.reference)],
    ),
    "numbers_in_many_forms": (forms, "_INDEX", re.compile("-?[0-9e]{1,6}")),
    "pages_of_any_site": (guarded_emulator, "_BROWSERS", ()),
    "any_length": (wallet_address, "MAX_URL", 10**9),
    "any_event": (web, "_readable", lambda event: event),
    "any_place": (vault, "_associated", lambda place: b""),
    "pages_without_end": (api.http, "PAGE_BYTES", 10**9),
    "any_link": (grammar, "_problem", lambda url, base_is_http: None),
    "any_approval_page": (OpenPayments, "_interact_url", lambda _, asked: asked.text("redirect")),
    "any_next": (dashboard.sign_in, "safe_next", lambda path: path),
    "names_twice": (strict_json, "_object", dict),
    "fields_twice": (pages, "parse_qsl", lambda raw, **how: dict(parse_qsl(raw, **how)).items()),
    "anybodys_session": (lookup, "own", lambda services, key, found: lookup.load(services, found)),
    "anybodys_cursor": (cursors, "_checksum", lambda merchant, position: "0" * 16),
    "anybodys_answer": (idempotency, "_place", lambda merchant, key: key),
    "any_hash": (interaction, "matches", lambda presented, **of: "grant_url"),
    "any_claim": (proof, "enough", lambda calls, record, received: True),
    "any_answer": (Delivery, "succeeded", property(lambda delivery: delivery.status is not None)),
    "any_receiver": (grammar, "_webhook_problem", lambda url, allow_loopback: None),
    "anybodys_event": (event_log, "get", lambda services, _, found: services.events.get(found)),
    "any_origin": (dependencies, "_require", lambda request, injected, wanted: None),
    "any_form_token": (dependencies, "_verify", lambda visited, presented: None),
    "a_cookie_for_all": (sign_in, "new_token", lambda random_bytes: "ab" * 32),
    "any_signature": (WebAuthnPasskeys, "used", lambda own, answer, challenge, passkey: passkey),
    "any_edge": (client_address, "proven", lambda presented, edge_secret: True),
    "an_empty_secret_proves": (
        client_address,
        "proven",
        lambda given, edge_secret: given in edge_secret.split(","),
    ),
    "the_first_address_named": (
        client_address,
        "_forwarded",
        lambda header, source: header.split(",")[0].strip(),
    ),
    "each_ipv6_address_by_itself": (client_address, "_V6_PREFIX", 128),
    "everybody_is_proven": (reach, "standing", lambda merchant: Standing.PROVEN),
    "events_of_anybody": (deliver, "allows", lambda merchant, effect: True),
    "fillers_are_letters": (names, "_HIDDEN", ()),
    "addresses_in_names": (names, "_ADDRESS", re.compile("(?!)")),
    "mailboxes_by_what_is_behind_the_plus": (limits, "mailbox", lambda address: address),
    "lists_without_end": (limits, "admit_list", lambda *_: None),
    "lists_of_each_process": (DynamoCounters, "attempt", lambda *_, **__: True),
    "as_much_as_is_left": (allowances, "LEFT_SHARE", 1),
    "paid_items_count": (Allowances, "give_items", lambda *_: None),
    "each_process_by_itself": (Allowances, "take_shared", lambda *_: 0),
    "any_provider_is_known": (Allowances, "knows", lambda *_: True),
    "refusals_forgotten": (_Times, "set", lambda *_: None),
    "pages_check_without_end": (limits, "admits_work", lambda *_: True),
    "patient_with_submissions": (prepare, "DEADLINE", timedelta(seconds=24)),
    "patient_with_documents": (exchange, "DOCUMENT", 10.0),
    "patient_pages": (reconcile, "PAGE_DEADLINE", timedelta(seconds=20)),
}
# By the file and the name of the test that must fail: the bug, what the test needs, its arguments.
BUGS: dict[str, dict[str, list[tuple[Any, ...]]]] = {
    "attacks/test_addresses": {
        "test_no_customer_is_redirected_there": [(no_list, AZURE)],
        "test_what_was_saved_before_is_not_used": [(no_list, AZURE)],
        "test_a_name_that_resolves_there_is_refused_when_saved_and_when_used": [
            (no_list, AZURE, False)
        ],
    },
    "attacks/test_texts": {
        "test_an_asset_code_is_letters_and_digits": [("any_text", "<b>")],
    },
    "attacks/test_tokens": {
        "test_a_stranger_gets_no_kept_token_and_renews_none": [
            (
                one_token_for_all,
                given(World),
                "customer",
                401,
                named("attacks/test_tokens::INACTIVE"),
            )
        ],
        "test_an_approval_for_another_payment_is_not_used": [
            ("any_approval", given(World), "receiver")
        ],
    },
    "attacks/test_browsers": {
        "test_another_browser_is_shown_what_is_paid_and_to_whom_and_pays_nothing": [
            ("any_browser", with_customer)
        ],
        "test_a_cookie_that_proves_nothing_is_asked": [
            ("one_proof_for_all", with_customer, "the link's")
        ],
        "test_a_form_of_another_site_is_asked_again": [("any_form", with_customer, "cross-site")],
        "test_a_link_that_another_site_opens_hands_nothing_over": [
            ("any_opener", with_patched_customer, "another site"),
            (only_other_sites_refused, with_patched_customer, "a site of the same domain"),
        ],
        "test_a_form_of_another_origin_is_asked_again": [
            ("any_origin_of_old_browsers", with_customer, "https://evil.example")
        ],
    },
    "attacks/test_details": {
        "test_what_a_customer_gave_is_shown_to_nobody_else": [
            ("details_for_everybody", given(Attack), "payment link"),
            ("withdrawals_for_everybody", given(Attack), "withdrawal"),
        ],
        "test_a_browser_sees_the_details_only_if_the_attempt_that_paid_was_its_own": [
            ("one_proof_for_all_attempts", by_an_earlier_browser)
        ],
        "test_an_erasure_leaves_nothing_of_what_came_in": [
            ("withdrawals_are_passed_over", given(Attack), "withdrawal"),
            ("answers_are_nobodys", given(Attack), "customer_email of /v1"),
        ],
    },
    "functions/test_dashboard_people": {
        "test_an_invitation_ends_with_its_senders_rights": [
            (invitations_outlive_their_sender, with_dashboard, "revoke")
        ],
        "test_a_developer_gives_no_key_what_they_may_not_do": [
            ("any_scope", with_dashboard, "full")
        ],
        "test_the_keys_of_a_member_who_may_no_more_are_shown_to_the_owners": [
            ("left_keys_are_hidden", with_dashboard, "role")
        ],
    },
    "flows/merchant/test_authentication": {
        "test_a_route_needs_one_scope": [
            ("writing_does_all", Scope.MANAGE, named("flows/merchant/test_authentication::MANAGES"))
        ],
    },
    "attacks/test_reach": {
        "test_an_effect_reaches_others_in_the_standings_of_its_row_alone": [
            ("everybody_is_proven", given(Attack), Standing.UNPROVEN),
            ("everybody_is_proven", given(Attack), Standing.SUSPENDED),
            ("events_of_anybody", given(Attack), Standing.UNPROVEN),
        ],
    },
    "attacks/test_sign_up": {
        "test_no_name_with_hidden_characters_becomes_a_shop": [
            ("fillers_are_letters", with_sign_up)
        ],
        "test_no_name_leads_anywhere_at_any_door": [
            ("addresses_in_names", partial(with_sign_up, world=True))
        ],
    },
    "flows/test_notices": {
        "test_addresses_that_nobody_has_confirmed_get_few_e_mails": [
            (
                "mailboxes_by_what_is_behind_the_plus",
                given(named("flows/test_notices::Shop")),
                *(3, 3, "192.0.2.{n}", "{case}+{n}@other.example", 3),
            )
        ],
    },
    "attacks/test_passkeys": {
        "test_no_forged_answer_makes_a_member": [
            ("frames_of_others", with_shop),
            (any_new_passkey, with_shop),
        ],
        "test_a_passkey_with_an_id_of_no_length_that_there_is_makes_no_member": [
            ("ids_of_any_length", with_dashboard, 5000)
        ],
        "test_no_forged_answer_signs_in": [("any_signature", with_shop)],
    },
    "attacks/test_redirects": {
        "test_no_session_leads_there": [
            ("line_ends", with_doors, "cancel_url"),
            ("any_link", with_doors, "cancel_url"),
        ],
        "test_no_customer_is_led_to_such_an_approval": [
            ("addresses_in_place_of_names", with_doors),
            ("any_approval_page", with_doors),
        ],
        "test_a_sign_in_leads_nowhere_else": [("any_next", with_doors)],
    },
    "functions/test_dashboard_export": {
        "test_a_formula_comes_out_as_text": [
            ("signs_by_their_first_character", with_signed_in, "＝1")
        ],
    },
    "open_payments/test_reasons": {
        "test_answers_that_were_not_recorded_fall_to_the_nearest_row": [
            ("too_fast_is_busy", "continue_grant", 429, "too_fast", "", Reason.TOO_FAST)
        ],
    },
    "functions/test_dashboard_keys": {
        "test_a_key_with_an_end_makes_none_that_outlives_it": [
            ("keys_outlive_their_maker", with_signed_in)
        ],
    },
    "adapters/test_api_keys": {
        "test_of_two_keys_that_were_counted_for_at_once_one_is_added": [
            (keys_of_one_reading, with_keys)
        ],
    },
    "open_payments/test_signatures": {
        "test_a_file_with_two_keys_or_with_one_byte_repeated_is_refused": [
            (any_key_file, "two keys"),
            (any_key_file, "zeros"),
        ],
    },
    "functions/test_dashboard_transactions": {
        "test_money_beyond_the_price_is_flagged_with_what_to_do": [
            ("more_than_asked_is_silent", with_signed_in)
        ],
    },
    "functions/test_pay_receipts": {
        "test_a_receipt_is_sent_once_with_the_order_number_first": [
            ("the_whole_id_in_a_receipt", with_outbox)
        ],
    },
    "functions/test_stripe": {
        "test_an_item_has_one_number_written_in_one_way": [
            ("numbers_in_many_forms", given(StripeApi), "00")
        ],
    },
    "attacks/test_neighbours": {
        "test_an_address_of_the_edge_that_stands_twice_is_the_clients": [
            (the_edges_address_as_often_as_it_stands,)
        ],
        "test_a_thousand_wrong_keys_do_not_keep_the_right_one_out": [
            (keys_counted_before_they_are_looked_up, 1)
        ],
        "test_a_header_is_not_believed_without_the_edges_proof": [
            ("any_edge", {"x-forwarded-for": named("attacks/test_neighbours::HERE")})
        ],
        "test_a_client_that_invents_addresses_is_limited_as_what_it_is": [("any_edge",)],
        "test_no_edge_is_proven_by_a_secret_that_is_not_set": [("an_empty_secret_proves", "", "")],
        "test_a_proven_edge_names_the_client_whatever_the_client_said_before": [
            ("the_first_address_named",)
        ],
        "test_an_ipv6_client_is_its_network": [
            ("each_ipv6_address_by_itself", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64")
        ],
        "test_another_client_pays_meanwhile": [(one_limit_for_all_clients,)],
        "test_a_merchant_with_many_lists_is_refused_and_no_other": [
            ("lists_without_end", *V1),
            (one_limit_for_all_merchants, *V1),
            ("lists_of_each_process", *V1),
        ],
        "test_a_client_with_many_submissions_is_refused_and_nothing_is_done": [
            ("each_process_by_itself",)
        ],
        "test_a_provider_that_is_not_known_or_not_any_more_is_counted_from_the_first_time": [
            ("any_provider_is_known",)
        ],
        "test_a_flood_of_submissions_costs_one_write_a_window": [("refusals_forgotten",)],
        "test_pages_of_payments_in_doubt_leave_the_checks_to_the_sweep_beyond_the_limit": [
            ("pages_check_without_end",)
        ],
        "test_copies_of_a_callback_hold_no_process_while_the_wallet_wants_time": [
            (sleeps_before_the_claim,)
        ],
        "test_a_return_that_is_refused_is_not_lost": [(claims_what_it_refuses,)],
        "test_a_submission_ends_in_time_whatever_the_wallet_does": [
            ("patient_with_submissions", "/quotes", 1e9, 12),
            ("patient_with_documents", "/alice", 1e9, 3.5),
        ],
        "test_a_page_waits_for_a_hanging_wallet_for_a_bounded_time": [("patient_pages",)],
        "test_a_wallet_that_hangs_delays_no_other_clean_up_of_its_batch": [
            (one_task_after_the_other, 2)
        ],
    },
    "template/test_template": {
        "test_neither_api_nor_page_reads_or_writes_a_sign_in_or_a_challenge": [
            (any_row_of_the_table, "PayFunction")
        ],
    },
    "sandbox/test_guarded_emulator": {
        "test_all_others_are_refused_and_the_emulator_is_not_asked": [
            ("pages_of_any_site", "another site", "POST")
        ],
    },
    "attacks/test_growth": {
        "cost": [(repeats_that_overlap, growing, "e-mail", 2048)],
        "weigh": [(names_in_many_places, multiplied)],
    },
    "open_payments/test_wallet_address": {
        "test_a_text_that_grows_beyond_the_limit_is_too_long": [("any_length",)],
    },
    "attacks/test_events": {
        "test_a_host_that_is_none_is_a_400": [("any_event", with_place, "api", "a:b:c")],
    },
    "attacks/test_moved_secrets": {
        "test_another_sessions_grant_opens_nowhere_else": [("any_place",)],
    },
    "functions/test_api": {
        "test_a_page_of_large_sessions_ends_before_lambda_refuses_it": [
            ("pages_without_end", given(MerchantApi), "😀")
        ],
    },
    "attacks/test_parser": {
        "test_no_session_is_made_of_such_a_body": [("names_twice", with_doors)],
        "test_no_wallet_is_asked_for_such_a_form": [("fields_twice", with_doors)],
    },
    "attacks/test_ids_and_cursors": {
        "test_another_merchants_session_is_missing_at_every_stage": [
            ("anybodys_session", with_doors, "open")
        ],
        "test_no_other_merchants_cursor_is_taken": [("anybodys_cursor", with_doors)],
        "test_no_key_replays_another_merchants_answer": [("anybodys_answer", with_doors)],
    },
    "attacks/test_callbacks": {
        "test_no_other_hash_is_taken": [("any_hash", with_doors)],
    },
    "attacks/test_hostile_wallets": {
        "test_a_payment_that_was_only_claimed_completes_nothing": [
            ("any_claim", given(Attack), 201)
        ],
    },
    "attacks/test_webhooks": {
        "test_no_receiver_changes_anything_but_its_own_event": [("any_answer", with_doors)],
        "test_no_address_elsewhere_is_saved": [("any_receiver", with_doors)],
        "test_a_key_that_may_not_read_learns_no_details_by_an_address_of_its_own": [
            ("writing_does_all", with_doors),
            ("details_to_any_address", with_doors),
        ],
    },
    "attacks/test_dashboard": {
        "test_no_path_leads_to_anothers_records": [("anybodys_event", with_doors)],
        "test_no_form_of_another_site_is_taken": [("any_origin", with_records, "/keys")],
        "test_no_form_without_its_own_token_is_taken": [("any_form_token", with_records, "/keys")],
        "test_a_planted_cookie_is_worth_nothing_after_the_sign_in": [
            ("a_cookie_for_all", with_doors)
        ],
    },
    "flows/links/test_purchase": {
        "test_a_few_clients_leave_something_for_the_others": [("as_much_as_is_left", with_stock)],
        "test_an_item_that_was_paid_does_not_count": [("paid_items_count", with_stock)],
    },
    "attacks/test_refunds": {
        "test_a_key_without_the_right_refunds_nothing": [("writing_does_all", with_refunds)],
        "test_nobody_refunds_or_reads_what_is_a_neighbours": [("anybodys_session", with_refunds)],
        "test_nobody_passes_their_rights_or_their_limit_at_any_door": [
            ("keys_move_money_by_signing_in", given(Attack)),
        ],
        "test_no_sequence_of_what_somebody_may_send_moves_more_than_their_limit": [
            ("limits_at_the_request_only", "support up to a limit", 0),
            ("limits_at_the_request_only", named("attacks/test_refunds::BY_KEY"), 0),
        ],
        "test_a_callback_that_is_forged_or_anothers_sends_nothing": [
            ("any_hash", with_refund_pages)
        ],
    },
}


CASES = [
    (bug, f"{module}::{test}", way)
    for module, tests in BUGS.items()
    for test, rows in tests.items()
    for bug, *way in rows
]


@pytest.mark.parametrize(
    ("bug", "test", "way"),
    CASES,
    ids=[f"{number}-{getattr(bug, '__name__', bug)}" for number, (bug, *_) in enumerate(CASES)],
)
def test_a_broken_defence_is_noticed(
    monkeypatch: Patch, bug: str | Callable[[Patch], None], test: str, way: list[Any]
) -> None:
    attack = partial(named(test), *way)
    if way and callable(way[0]):
        attack = partial(way[0], named(test), *way[1:])
    attack()
    if isinstance(bug, str):
        monkeypatch.setattr(*BROKEN[bug])
    else:
        bug(monkeypatch)
    with pytest.raises(NOTICED):
        attack()


def test_a_life_whose_lines_are_not_redacted_is_noticed(
    monkeypatch: Patch, told: Callable[[], list[dict[str, Any]]]
) -> None:
    life = named("attacks/test_secrets::Life")(monkeypatch, told)
    nothing_redacted(monkeypatch)
    life.purchase("alice")
    assert ("session id", "log") in life.scan().leaks
