"""The documents of this package agree with its code, and with the pinned standard."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from client_script import ALICE, START

from open_payments import answers
from open_payments.answers import Answer
from open_payments.errors import Reason

ROOT: Final = Path(__file__).parents[1]
SPEC: Final = ROOT / "spec"


def test_the_pinned_standard_is_unchanged() -> None:
    lines = (SPEC / "SHA256SUMS").read_text("utf-8").splitlines()
    pinned = {name: digest for digest, name in (line.split() for line in lines)}
    assert pinned == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in SPEC.glob("*.yaml")
    }
    versions = dict(
        re.findall(r"\| `([\w-]+\.yaml)` \| ([\d.]+) \|", (SPEC / "README.md").read_text("utf-8"))
    )
    assert versions == {
        path.name: yaml.safe_load(path.read_bytes())["info"]["version"]
        for path in SPEC.glob("*.yaml")
    }


def examples(document: str, path: str, method: str, status: str) -> Iterator[dict[str, Any]]:
    """Yield the answers that the standard shows for an operation."""
    operation = yaml.safe_load((SPEC / document).read_bytes())["paths"][path][method]
    content = operation["responses"][status]["content"]["application/json"]
    for each in content.get("examples", {}).values():
        yield each["value"]
    if "example" in content:
        yield content["example"]


def reading(found: dict[str, Any]) -> Answer:
    """Return an example as an answer; what it has as http is read as https."""
    return Answer(secured(found), operation="example")


def secured(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: secured(each) for name, each in value.items()}
    if isinstance(value, list):
        return [secured(each) for each in value]
    return re.sub("^http:", "https:", value) if isinstance(value, str) else value


RESOURCES: Final = "resource-server.yaml"


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/incoming-payments", "post", "201"),
        ("/incoming-payments/{id}", "get", "200"),
        ("/incoming-payments/{id}/complete", "post", "200"),
    ],
)
def test_the_standards_incoming_payments_are_read(path: str, method: str, status: str) -> None:
    found = list(examples(RESOURCES, path, method, status))
    assert found
    for each in found:
        read = reading(each)
        if read.has("walletAddress"):
            payment = answers.incoming_payment(read, wallet=read.text("walletAddress"))
            assert payment.received.value == int(each["receivedAmount"]["value"])
            assert payment.metadata == each.get("metadata")
        else:
            assert answers.public_incoming_payment(read).auth_server == read.text("authServer")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/incoming-payments", "incoming"),
        ("/outgoing-payments", "outgoing"),
    ],
)
def test_the_standards_lists_are_read(path: str, kind: str) -> None:
    pages = list(examples(RESOURCES, path, "get", "200"))
    assert pages
    for page in pages:
        items = reading(page).children("result")
        assert items
        for each in items:
            if kind == "incoming":
                answers.incoming_payment(each, wallet=each.text("walletAddress"))
            else:
                answers.outgoing_payment(each, id_on=each.text("id"))


@pytest.mark.parametrize(("path", "method", "status"), [
    ("/outgoing-payments", "post", "201"), ("/outgoing-payments/{id}", "get", "200"),
])  # fmt: skip
def test_the_standards_outgoing_payments_are_read(path: str, method: str, status: str) -> None:
    found = list(examples(RESOURCES, path, method, status))
    assert found
    for each in found:
        payment = answers.outgoing_payment(reading(each), id_on=secured(each["id"]))
        assert payment.debit.value == int(each["debitAmount"]["value"])


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/quotes", "post", "201"), ("/quotes/{id}", "get", "200")]
)
def test_the_standards_quotes_are_read(path: str, method: str, status: str) -> None:
    found = list(examples(RESOURCES, path, method, status))
    assert found
    for each in found:
        read = reading(each)
        debit = read.amount("debitAmount")
        wallet = type(ALICE)(
            read.text("walletAddress"), debit.asset_code, debit.asset_scale, "", read.text("id")
        )
        assert answers.quote(read, wallet=wallet, receiver=read.text("receiver")).debit == debit


def test_the_standards_grants_are_read() -> None:
    found = list(examples("auth-server.yaml", "/continue/{id}", "post", "200"))
    kinds = set()
    for each in found:
        read = reading(each)
        server = read.child("continue").text("uri")
        wallet = "https://ilp.interledger-test.dev/alice"
        continued = answers.continued(
            read, auth_server=server, wallet=wallet, sent_at=START, answered_at=START
        )
        kinds.add((continued.token is not None, continued.subject, continued.waits))
    assert kinds == {
        (True, (), False),
        (False, ("https://ilp.interledger-test.dev/alice",), False),
        (False, (), True),
    }


def test_the_standards_wallet_address_and_keys_are_read() -> None:
    schemas = yaml.safe_load((SPEC / "wallet-address-server.yaml").read_bytes())["components"][
        "schemas"
    ]
    [wallet] = schemas["wallet-address"]["examples"]
    assert answers.wallet_address(reading(wallet)).asset_code == wallet["assetCode"]
    [keys] = schemas["json-web-key-set"]["examples"]
    assert [key.members() for key in answers.jwks(reading(keys))] == [
        {name: each[name] for name in ("kid", "alg", "kty", "crv", "x")} for each in keys["keys"]
    ]


def test_the_page_of_errors_has_each_reason() -> None:
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    section = page.partition("## Reasons")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [each.value for each in Reason]


def test_the_payment_of_the_readme_takes_25_lines() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    code = readme.partition("```python\n")[2].partition("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    compile(code, "README.md", "exec")
