"""Stripe's own libraries, unmodified from the registries, against the local world's /v1."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import httpx2
import pytest

from sandbox.place import Place
from tests.interop.packages import (
    FLASK,
    REPOSITORY,
    STRIPE,
    STRIPE_RUBY,
    environment,
    gem,
    installed,
)
from tests.interop.shops import EXAMPLES, of, sells
from tests.support.merchant_api import a_body
from tests.support.processes import call, own_key

HERE: Final = Path(__file__).parent

pytestmark = [pytest.mark.interop, pytest.mark.enable_socket]


@pytest.fixture(scope="module")
def known(place: Place) -> list[str]:
    """Return the ids of 250 sessions."""
    key = own_key(place)

    def create(_: int) -> str:
        answer = call(place, "", a_body(), key=key)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(create, range(250)))


@pytest.fixture(scope="module")
def secret(place: Place) -> str:
    """Create the merchant's webhook endpoint, for the listener's address; return its secret."""
    answer = httpx2.post(
        f"{place.checkout}/v1/webhook_endpoints",
        data={
            "url": f"https://localhost:{place.listener_port}/",
            "enabled_events[0]": "checkout.session.completed",
            "enabled_events[1]": "checkout.session.expired",
        },
        auth=(own_key(place), ""),
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["secret"])


def finds_what_it_needs(command: list[str], env: dict[str, str], known: list[str]) -> None:
    done = subprocess.run(
        command,
        cwd=HERE,
        env=env,
        input=json.dumps(known),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


@pytest.mark.parametrize("release", [pytest.param(STRIPE[0], marks=pytest.mark.smoke), *STRIPE[1:]])
def test_stripe_python_finds_what_it_needs(
    release: str, place: Place, seller: str, known: list[str]
) -> None:
    env = environment(installed(release), **{**of(place), "API_KEY": seller})
    finds_what_it_needs([sys.executable, "stripe_client.py"], env, known)


@pytest.mark.smoke
def test_stripe_node_finds_what_it_needs(node: str, place: Place, known: list[str]) -> None:
    finds_what_it_needs([node, "stripe_client.mjs"], {**os.environ, **of(place)}, known)


def test_the_flask_shop_sells(place: Place, secret: str) -> None:
    folder = EXAMPLES / "stripe-flask"
    assert len((folder / "shop.py").read_text("utf-8").splitlines()) < 60
    command = [sys.executable, "-m", "flask", "--app", "shop", "run", "--port", "PORT"]
    sells(place, command, folder, "Stripe-Signature", **environment(installed(*FLASK)))


def test_the_express_shop_sells(node: str, place: Place, secret: str, tmp_path: Path) -> None:
    source = EXAMPLES / "stripe-express" / "shop.mjs"
    assert len(source.read_text("utf-8").splitlines()) < 60
    shutil.copy(source, tmp_path)
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    sells(place, [node, "shop.mjs"], tmp_path, "Stripe-Signature")


PHP: Final = r"""<?php
require $argv[1] . '/init.php';
\Stripe\Stripe::$apiBase = getenv('API_BASE');
$keys = ['api_key' => getenv('API_KEY'), 'api_base' => getenv('API_BASE')];
$stripe = new \Stripe\StripeClient($keys);
$seen = [];
foreach ($stripe->checkout->sessions->all(['limit' => 50])->autoPagingIterator() as $session) {
    $seen[] = $session->id;
}
echo count($seen) === count(array_unique($seen)) ? count($seen) : 'twice', "\n";
"""


def test_stripe_php_lists_every_session(place: Place, known: list[str], tmp_path: Path) -> None:
    php, library = shutil.which("php"), os.environ.get("STRIPE_PHP", "")
    if php is None or not library:
        pytest.skip("apt-get install php-cli, and set STRIPE_PHP to a folder with stripe-php")
    (tmp_path / "list.php").write_text(PHP, "utf-8")
    done = subprocess.run(
        [php, "list.php", library],
        cwd=tmp_path,
        env={**os.environ, **of(place)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert int(done.stdout) >= len(known), done.stdout + done.stderr


RUBY: Final = """
require "json"
require "stripe"
Stripe.api_base = ENV.fetch("API_BASE")
Stripe.api_key = ENV.fetch("API_KEY")
price = { currency: "usd", unit_amount: 1000, product_data: { name: "Tea" } }
session = Stripe::Checkout::Session.create(
  mode: "payment", success_url: "https://shop.example/thanks",
  line_items: [{ price_data: price, quantity: 2 }], metadata: { order: "7" }
)
newest = Stripe::Checkout::Session.list(limit: 1).data.first
made = Stripe::WebhookEndpoint.create(url: "https://shop.example/ruby", enabled_events: ["*"])
found = Stripe::WebhookEndpoint.retrieve(made.id)
deleted = found.delete.deleted
errors = [
  -> { Stripe::WebhookEndpoint.retrieve(made.id) },
  -> { Stripe::Checkout::Session.create(mode: "subscription") },
].map do |ask|
  ask.call
rescue Stripe::InvalidRequestError => error
  [error.http_status, error.code, error.param]
end
puts JSON.generate([session.amount_total, newest.id == session.id, newest.metadata["order"],
                    deleted, errors])
"""


def test_stripe_ruby_sells_lists_and_deletes_an_endpoint(place: Place, tmp_path: Path) -> None:
    folder = gem(*STRIPE_RUBY)
    done = subprocess.run(
        ["ruby", "-e", RUBY],
        cwd=tmp_path,
        env={**os.environ, **of(place), "GEM_PATH": str(folder), "GEM_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == [
        2000,
        True,
        "7",
        True,
        [[404, "resource_missing", "id"], [400, "parameter_invalid", "mode"]],
    ]


def test_the_guide_names_what_was_run() -> None:
    text = (REPOSITORY / "docs" / "stripe.md").read_text("utf-8")
    for lines in re.findall(r"^ *```(?:python|javascript)\n(.*?)^ *```$", text, re.M | re.S):
        assert any(name in lines for name in ("api_base", "host:", "WebhookEndpoint.create")), lines
