"""Each defence is broken once: the suites of this folder must notice.

A bug is put into the product for as long as one test of a suite runs, and that test must fail.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

import api.paging
from checkout import web
from checkout.adapters import vault
from checkout.adapters.outbound import addresses
from checkout.domain import grammar
from checkout.flows.payment.sealed import Grant
from checkout.open_payments import answers, urls
from checkout.open_payments.tokens import TokenKeeper
from pay import browser
from tests.attacks import test_addresses as on_addresses
from tests.attacks import test_browsers as on_browsers
from tests.attacks import test_events as on_events
from tests.attacks import test_moved_secrets as on_moved_secrets
from tests.attacks import test_texts as on_texts
from tests.attacks import test_tokens as on_tokens
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
