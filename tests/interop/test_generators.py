"""Generators of typed clients, from the registries, on the native API's OpenAPI document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interop.packages import CLIENT_GENERATOR, REPOSITORY, environment, installed

HERE: Final = Path(__file__).parent
DOCUMENT: Final = REPOSITORY / "docs" / "openapi.json"

pytestmark = pytest.mark.interop

PYTHON: Final = """
from checkout_client.models import CreateSession, NewLineItem, PriceData, ProductData, Session
price = PriceData(currency="usd", unit_amount=1000, product_data=ProductData(name="Tea"))
new = CreateSession(mode="payment", line_items=[NewLineItem(price_data=price)],
                    success_url="https://shop.example/", cancel_url="https://shop.example/")
assert set(new.to_dict()) == {"mode", "line_items", "success_url", "cancel_url"}, new.to_dict()
assert Session.from_dict
from checkout_client.api.default import create_session, expire_session, list_sessions
"""
TYPESCRIPT: Final = """
import type { components, webhooks } from "./checkout";
type New = components["schemas"]["CreateSession"];
const item = { price_data: { currency: "usd", unit_amount: 1000, product_data: { name: "Tea" } } };
export const bare: New = {
  mode: "payment",
  line_items: [item],
  success_url: "https://shop.example/",
  cancel_url: "https://shop.example/",
};
type Post = webhooks["checkout.session.completed"]["post"];
type Paid = Post["requestBody"]["content"]["application/json"];
export const paid = (event: Paid): boolean => event.status === "completed";
// @ts-expect-error a required field must be there
export const wrong: New = { mode: "payment", line_items: [item], success_url: "https://x/" };
"""


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout + done.stderr)


def test_openapi_python_client_makes_a_client_without_required_options(tmp_path: Path) -> None:
    env = environment(installed(*CLIENT_GENERATOR))
    config = tmp_path / "config.yaml"
    config.write_text("package_name_override: checkout_client\npost_hooks: []\n", "utf-8")
    target = str(tmp_path / "checkout_client")
    generate = ["generate", "--path", str(DOCUMENT), "--output-path", target, "--meta", "none"]
    command = [sys.executable, "-m", "openapi_python_client", *generate, "--config", str(config)]
    said = run(command, env=env, cwd=tmp_path)
    assert "WARNING" not in said.upper(), said
    run([sys.executable, "-m", "compileall", "-q", "checkout_client"], cwd=tmp_path)
    run([sys.executable, "-c", PYTHON], env=env, cwd=tmp_path)


def test_openapi_typescript_makes_types_without_required_options(node: str, tmp_path: Path) -> None:
    modules = HERE / "node_modules"
    types = str(tmp_path / "checkout.d.ts")
    run([node, str(modules / "openapi-typescript/bin/cli.js"), str(DOCUMENT), "-o", types])
    (tmp_path / "shop.ts").write_text(TYPESCRIPT, "utf-8")
    strict = ["--strict", "--noEmit", "--skipLibCheck", "false"]
    run([node, str(modules / "typescript/bin/tsc"), *strict, "shop.ts"], cwd=tmp_path)
