from __future__ import annotations

import json

from checkout.domain.merchant import ApiKey
from checkout.domain.session import Status
from checkout.domain.webhooks import event_body
from checkout.open_payments.models import WalletAddress
from tests.adapters.samples import a_merchant
from tests.support import a_session


def test_the_event_is_the_seven_fields_in_the_specifications_order_as_compact_json() -> None:
    session = a_session(
        Status.COMPLETED,
        metadata_json='{"order":"42","émoji":"😀","n":1,"t":true}',
        outgoing_payment="https://bank.example/outgoing-payments/1",
        customer=WalletAddress("https://bank.example/alice", "EUR", 2, "https://a", "https://r"),
    )
    body = event_body(session)
    assert list(json.loads(body)) == [
        "id",
        "status",
        "amount_total",
        "currency",
        "metadata",
        "outgoing_payment",
        "customer_wallet",
    ]
    assert body.startswith(f'{{"id":"{session.id}","status":"completed","amount_total":2000,')
    assert '"metadata":{"order":"42","émoji":"😀","n":1,"t":true}' in body
    assert body.endswith('"customer_wallet":"https://bank.example/alice"}')


def test_no_record_shows_its_secret_in_a_log() -> None:
    merchant = a_merchant(private_key="SEALED")
    session = a_session(grant="SEALED", token="SEALED", interact_url="https://SEALED")
    assert "SEALED" not in repr(merchant)
    assert "SEALED" not in repr(session)
    assert ApiKey.__dataclass_params__.frozen  # type: ignore[attr-defined]
