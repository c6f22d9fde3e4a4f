"""README.md and docs/api.md as somebody follows them who has nothing else: each snippet is run, and
does what the page says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import stripe

from sandbox.place import Place
from tests.support.deliveries import delivered, samples
from tests.support.processes import Dev, free_base
from tests.support.sources import REPOSITORY

README: Final = (REPOSITORY / "README.md").read_text("utf-8")
API: Final = (REPOSITORY / "docs" / "api.md").read_text("utf-8")


def snippets(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


START, CHECKOUT, DEMO, SETUP = snippets(README, "sh")
CHECKOUT_PRINTS, DEMO_PRINTS = snippets(README, "text")
[VERIFY] = snippets(README, "python")
CREATE, READ, ATTEMPTS = snippets(API, "sh")
[CREATED] = snippets(API, "json")

# Texts that differ each time: ids, times, the place of the world, today's rates.
_CHANGING: Final = (
    (re.compile(r"cs_\w+…?"), "cs_…"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r"interact/\S+"), "interact/…"),
    (re.compile(r"\d+\.\d\d EUR"), "<price> EUR"),
)


def lasting(text: str) -> str:
    for changing, name in _CHANGING:
        text = changing.sub(name, text)
    return text


class Reader:
    """Somebody at a shell, with the world that `make dev` has made in another terminal."""

    def __init__(self, place: Place, state: Path) -> None:
        self.place = place
        of_make = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")  # these tests are themselves run by make
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in of_make},
            "SANDBOX_STATE": str(state),
            "SANDBOX_PORT": str(place.base),
        }

    def here(self, text: str) -> str:
        """Replace the ports and the folder of the default world by those of this one."""
        text = text.replace(".sandbox/4000/", f"{self.place.folder}/")
        return re.sub(
            r"localhost:(4[0-9]{3})\b",
            lambda found: f"localhost:{int(found[1]) - 4000 + self.place.base}",
            text,
        )

    def runs(self, script: str, **variables: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.here(script)],
            cwd=REPOSITORY,
            env=self._environment | variables,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("world")


@pytest.fixture(scope="module")
def world(state: Path) -> Iterator[Dev]:
    """Started as the page says; ended with Ctrl-C, as it says too."""
    program, target = START.splitlines()[0].split("#")[0].split()
    assert (program, target) == ("make", "dev")
    found = Dev(state, free_base(), program=(program,))
    yield found
    found.end()
    assert "Traceback" not in found.text


@pytest.fixture
def reader(world: Dev, state: Path) -> Reader:
    return Reader(world.place, state)


@pytest.fixture
def api_key(world: Dev) -> str:
    """Run the line that `make dev` printed."""
    [line] = [line for line in world.said if line.startswith("API key")]
    command = line.removeprefix("API key").strip()
    done = subprocess.run(
        ["bash", "-c", f"{command}\nprintf %s $API_KEY"], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_second_command_runs_all_tests() -> None:
    """tests/house/test_ci.py compares them with those of CI."""
    assert START.splitlines()[1].split("#")[0].strip() == "make test"


@pytest.mark.cloud
def test_the_demo_prints_what_the_page_says(reader: Reader) -> None:
    assert lasting(reader.runs(DEMO)) == lasting(reader.here(DEMO_PRINTS))


@pytest.mark.cloud
def test_the_checkout_in_curl_can_be_pasted_as_a_whole(reader: Reader) -> None:
    printed = reader.runs(CHECKOUT)
    assert lasting(printed) == lasting(reader.here(CHECKOUT_PRINTS))
    assert len(set(re.findall(r"cs_\w+", printed))) == 1


@pytest.mark.cloud
def test_a_session_is_created_and_read_with_curl(reader: Reader, api_key: str) -> None:
    created = reader.runs(CREATE, API_KEY=api_key)
    assert lasting(created) == lasting(reader.here(CREATED))
    read = reader.runs(READ, API_KEY=api_key, SESSION=json.loads(created)["id"])
    assert json.loads(read) == json.loads(created)
    attempts = reader.runs(ATTEMPTS, API_KEY=api_key, SESSION=json.loads(created)["id"])
    assert json.loads(attempts)["data"] == []


@pytest.mark.cloud
def test_a_merchant_joins_with_the_command_of_the_page(reader: Reader, world: Dev) -> None:
    wallet = f"https://localhost:{world.place.base + 101}/alice"
    said = reader.runs(SETUP.replace("https://wallet.example/shop", wallet))
    assert re.search(r"\bmer_\w+", said)
    assert len(re.findall(r"\bsk_\w+", said)) == 1


def test_the_webhook_snippet_fulfils_for_genuine_deliveries_only() -> None:
    code = compile(VERIFY, "README.md", "exec")
    for sample in samples():
        fulfilled: list[dict[str, Any]] = []
        names = {
            "stripe": stripe,
            "body": sample.delivered.body,
            "headers": sample.delivered.headers,
            "secret": sample.delivered.secret,
            "fulfil": lambda **order: fulfilled.append(order),  # noqa: B023
        }
        try:
            exec(code, names)  # noqa: S102 - our own page
        except stripe.SignatureVerificationError:
            assert not sample.accepted, sample.name
        body = json.loads(sample.delivered.body)
        order = {"order": body["metadata"]["order"], "session": body["id"]}
        assert fulfilled == ([order] if sample.accepted else []), sample.name


def test_a_delivery_is_not_a_stripe_event() -> None:
    """README.md and docs/webhooks.md say so: no `type`, `data` or `created`."""
    [sample] = delivered()
    event: Any = stripe.Webhook.construct_event(
        sample.body, sample.headers["Checkout-Signature"], sample.secret
    )
    assert isinstance(event, stripe.Event)
    assert event["id"].startswith("cs_")
    for name in ("type", "data", "created"):
        with pytest.raises(KeyError):
            event[name]
