"""Take a payment from the command line: ask, let the customer approve, pay, and look what arrived.

    python purchase.py https://wallet.example/shop KEY_ID private.key '$bank.example/alice' 18.50

Prints the page at which the customer approves, and waits for the URL to which that page returns.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from open_payments import (
    Amount,
    IncomingPayment,
    Limits,
    OpenPayments,
    PendingGrant,
    Quote,
    SigningKey,
    WalletAddress,
    errors,
)


@dataclass(frozen=True)
class Purchase:
    """What the shop keeps until the customer returns."""

    shop: WalletAddress
    invoice: IncomingPayment
    quote: Quote
    pending: PendingGrant


def ask(op: OpenPayments, shop_url: str, payer: str, price: Decimal, return_url: str) -> Purchase:
    """Ask the payer for `price` in the shop's currency."""
    shop, customer = op.wallet_address(shop_url), op.wallet_address(payer)
    value = int(price.scaleb(shop.asset_scale))
    invoice = op.incoming_payments.create(
        shop, Amount(value, shop.asset_code, shop.asset_scale), metadata={"description": "Tea"}
    )
    quote = op.quotes.create(customer, receiver=invoice)
    limits = Limits(receiver=invoice.id, debit_amount=quote.debit)
    pending = op.grants.request(customer, limits, finish_uri=return_url)
    return Purchase(shop, invoice, quote, pending)


def pay(op: OpenPayments, purchase: Purchase, query: str) -> Amount:
    """Redeem the approval, pay once, and return what has arrived at the shop.

    The return page's query is a stranger's text. The shop's own wallet is the only witness that
    money arrived; a wallet may need some seconds to deliver it.
    """
    grant = op.grants.continue_(purchase.pending, purchase.pending.verify(query))
    # After an unknown outcome the money may have moved: never send again, look what arrived.
    with suppress(errors.OutcomeUnknown):
        op.outgoing_payments.create(grant, purchase.quote)
    return op.incoming_payments.get(purchase.shop, purchase.invoice.id).received


def main() -> None:
    shop_url, key_id, key_file, payer, price = sys.argv[1:]
    op = OpenPayments(shop_url, SigningKey.from_pem(key_id, Path(key_file).read_text()))
    purchase = ask(op, shop_url, payer, Decimal(price), "http://localhost:8000/return")
    print(f"It costs the payer {purchase.quote.debit}. Approve it at:\n{purchase.pending.redirect}")
    query = urlsplit(input("The URL to which the page returned: ")).query
    print(f"{pay(op, purchase, query)} arrived.")


if __name__ == "__main__":
    main()
