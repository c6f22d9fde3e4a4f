"""The README and the examples of packages/open-payments, at the sandbox's wallets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from open_payments import Amount, Grant, OpenPayments, Request, Response, SigningKey, errors
from sandbox.wallets.clients import fetch_on_loopback
from sandbox.wallets.interaction import NoRedirect
from tests.support.package_examples import PACKAGE, example
from tests.support.wallet_client import ALICE, HARBOR, KEY, KEY_ID, SHOP, World

SIGNING: Final = SigningKey(KEY_ID, KEY.private_bytes_raw())


class Wallets:
    """`open_payments.Transport` to the wallets of a world. `lose` loses the answer to a payment."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lose = False

    def send(self, request: Request, *, timeout: float) -> Response:
        assert timeout > 0
        answer = self.world.network.handle(request)
        if self.lose and request.method == "POST" and request.url.endswith("/outgoing-payments"):
            raise errors.OutcomeUnknown("cut off")
        return answer


@pytest.fixture
def wallets(world: World) -> Wallets:
    return Wallets(world)


def client(wallets: Wallets, **options: Any) -> OpenPayments:
    """Return a client of the world's shop, in the world's time."""
    clock = wallets.world.clock
    return OpenPayments(
        SHOP,
        options.pop("key", SIGNING),
        transport=wallets,
        development=True,
        now=clock,
        sleep=clock.pass_,
        **options,
    )


@pytest.fixture
def readme(wallets: Wallets) -> dict[str, Any]:
    """Return the names of the README's code, whose client asks the world's wallets."""
    code = (PACKAGE / "README.md").read_text("utf-8").partition("```python\n")[2]
    code = code.partition("```")[0]
    made = 'OpenPayments(SHOP, SigningKey.from_pem("shop-key", open("private.key").read()))'
    for old, new in ((made, "made"), ("https://wallet.example/shop", SHOP)):
        assert code.count(old) == 1
        code = code.replace(old, new)
    names: dict[str, Any] = {"made": client(wallets)}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - our own page
    return names


def approved(wallets: Wallets, page: str) -> str:
    """Approve as the customer, and return the query of the return."""
    return urlsplit(wallets.world.network.approve(page)).query


def test_the_payment_of_the_readme_arrives(wallets: Wallets, readme: dict[str, Any]) -> None:
    before = wallets.world.balance(SHOP)
    page = readme["start"]("42", 2000, ALICE)
    query = approved(wallets, page)
    forged = query.replace("hash=", "hash=A")
    with pytest.raises(errors.NotFromThisServer):
        readme["finish"]("42", forged)
    with pytest.raises(errors.Declined):
        readme["finish"]("42", "result=grant_rejected")
    assert wallets.world.balance(SHOP) == before
    assert readme["finish"]("42", query) == Amount(2000, "USD", 2)
    assert wallets.world.balance(SHOP) == before + 2000


def test_a_payment_whose_answer_is_lost_is_found_and_made_once(
    wallets: Wallets, readme: dict[str, Any]
) -> None:
    before = wallets.world.balance(SHOP)
    query = approved(wallets, readme["start"]("42", 2000, ALICE))
    wallets.lose = True
    assert readme["finish"]("42", query) == Amount(2000, "USD", 2)
    assert wallets.world.balance(SHOP) == before + 2000


def test_a_second_request_for_the_same_payment_is_told_apart(
    wallets: Wallets, readme: dict[str, Any]
) -> None:
    op = readme["op"]
    query = approved(wallets, readme["start"]("42", 2000, ALICE))
    _, _, quote, pending = readme["orders"]["42"]
    grant = op.grants.continue_(pending, pending.verify(query))
    paid = op.outgoing_payments.create(grant, quote)
    before = wallets.world.balance(SHOP)
    with pytest.raises(errors.Refused) as second:
        op.outgoing_payments.create(grant, quote)
    assert second.value.reason is errors.Reason.INVALID_QUOTE
    assert not second.value.retryable
    assert op.outgoing_payments.find(grant, quote).id == paid.id
    assert wallets.world.balance(SHOP) == before


def test_the_purchase_of_the_example_is_paid(wallets: Wallets) -> None:
    purchase = example("purchase")
    op = client(wallets)
    bought = purchase.ask(op, SHOP, ALICE, Decimal("18.50"), "https://shop.example/return")
    query = approved(wallets, bought.pending.redirect)
    assert purchase.pay(op, bought, query) == Amount(1850, "USD", 2)


def test_the_callback_of_the_example_believes_only_the_wallet(wallets: Wallets) -> None:
    page = example("verify_callback")
    op = client(wallets)
    bought = example("purchase").ask(
        op, SHOP, ALICE, Decimal("18.50"), "https://shop.example/return?order=42"
    )
    page.keep("42", bought.pending)
    query = approved(wallets, bought.pending.redirect)
    started: list[str] = []

    def visit(text: str) -> tuple[str, str]:
        body = page.app({"QUERY_STRING": text}, lambda status, _: started.append(status))
        return started[-1], b"".join(body).decode()

    assert visit(query)[0] == "200 OK"
    assert "Approved" in visit(query)[1]
    assert visit(query.replace("hash=", "hash=A"))[0] == "403 Forbidden"
    assert "did not approve" in visit("order=42&result=grant_rejected")[1]
    assert visit("order=43")[0] == "404 Not Found"


@pytest.fixture
def documents() -> Iterator[tuple[str, SigningKey, dict[str, object]]]:
    """Serve the documents of a client on loopback; return its URL, its key and the documents."""
    jwks_server = example("jwks_server")
    found: dict[str, object] = {}
    server = jwks_server.serve(found, port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://localhost:{server.server_port}/client"
    yield url, SigningKey.generate("own", random=lambda size: bytes(range(1, size + 1))), found
    server.shutdown()
    server.server_close()


@pytest.mark.enable_socket
def test_wallets_know_a_client_by_the_documents_that_the_example_serves(
    documents: tuple[str, SigningKey, dict[str, object]],
) -> None:
    url, key, found = documents
    world = World(fetch=fetch_on_loopback)
    op = client(Wallets(world), key=key, client=url)
    shop = op.wallet_address(SHOP)
    with pytest.raises(errors.Refused) as unknown:
        op.incoming_payments.create(shop)
    assert unknown.value.of_key
    found |= example("jwks_server").documents(url, "Tea House", shop, key)
    invoice = op.incoming_payments.create(shop, Amount(500, "USD", 2))
    assert invoice.incoming_amount == Amount(500, "USD", 2)
    assert json.dumps(found)  # each document is JSON


def test_lists_metadata_and_the_public_view_are_read(wallets: Wallets) -> None:
    op = client(wallets)
    shop = op.wallet_address(SHOP)
    made = [
        op.incoming_payments.create(shop, Amount(value, "USD", 2), metadata={"order": str(value)})
        for value in (100, 200, 300)
    ]
    listed = list(op.incoming_payments.list(shop, page_size=2))
    assert [each.id for each in listed] == [each.id for each in reversed(made)]
    assert [(each.metadata or {})["order"] for each in listed] == ["300", "200", "100"]
    assert op.incoming_payments.get_public(made[0].id).received == Amount(0, "USD", 2)
    assert op.incoming_payments.complete(shop, made[0].id).completed


def test_a_quote_of_a_fixed_amount_is_made_and_read_again(wallets: Wallets) -> None:
    op = client(wallets)
    shop, payer = op.wallet_address(SHOP), op.wallet_address(ALICE)
    invoice = op.incoming_payments.create(shop)
    quote = op.quotes.create(payer, receiver=invoice, receive=Amount(500, "USD", 2))
    assert quote.receive == Amount(500, "USD", 2)
    assert op.quotes.get(payer, quote) == quote


def test_a_grant_is_polled_until_the_customer_approves(wallets: Wallets) -> None:
    op = client(wallets, timeout=60)
    payer = op.wallet_address(ALICE)
    waiting = op.grants.request(payer, None)
    still = op.grants.poll(waiting)
    assert not isinstance(still, Grant)
    with pytest.raises(NoRedirect):  # the customer stays at the wallet
        wallets.world.network.approve(waiting.redirect)
    granted = op.grants.poll(still)
    assert isinstance(granted, Grant)
    assert list(op.outgoing_payments.list(granted)) == []


def test_tokens_are_rotated_and_grants_cancelled(wallets: Wallets, readme: dict[str, Any]) -> None:
    op = readme["op"]
    query = approved(wallets, readme["start"]("42", 2000, ALICE))
    _, _, quote, pending = readme["orders"]["42"]
    grant = op.grants.continue_(pending, pending.verify(query))
    renewed = op.tokens.rotate(grant)
    with pytest.raises(errors.Refused) as old:
        op.outgoing_payments.create(grant, quote)
    assert old.value.reason is errors.Reason.TOKEN_INACTIVE
    assert op.outgoing_payments.spent(renewed).debit is None
    op.grants.cancel(renewed)
    with pytest.raises(errors.Refused):
        op.outgoing_payments.create(renewed, quote)


def test_a_directed_client_creates_an_invoice_and_is_asked_for_no_document(
    wallets: Wallets,
) -> None:
    op = client(wallets, key=SigningKey.generate("unregistered"), directed=True)
    shop = op.wallet_address(SHOP)
    invoice = op.incoming_payments.create(shop, expires_in=timedelta(minutes=5))
    assert op.incoming_payments.get(shop, invoice.id) == invoice


def test_the_address_of_another_wallet_is_typed_as_a_pointer(wallets: Wallets) -> None:
    assert client(wallets).wallet_address(f"${HARBOR.removeprefix('https://')}/shop").id == SHOP
