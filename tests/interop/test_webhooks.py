"""Verify deliveries as merchants do: with the libraries that they have, and docs/webhooks.md, which
is executed as it stands.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import standardwebhooks
import stripe

from tests.support.deliveries import Sample, delivered, samples

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "webhooks.md"
LIBRARIES: Final = {"stripe": stripe, "standardwebhooks": standardwebhooks}
REFUSALS: Final = (
    stripe.SignatureVerificationError,
    standardwebhooks.WebhookVerificationError,
)

# Reads deliveries from its input, calls the page's `verify` and prints true or false a line.
MAIN_JS: Final = """
import { readFileSync } from "node:fs";
import { verify } from "./snippet.mjs";
for (const { body, signature, secret } of JSON.parse(readFileSync(0, "utf8")))
  console.log(verify(Buffer.from(body), signature, secret));
"""
MAIN_PHP: Final = """<?php
require __DIR__ . '/snippet.php';
foreach (json_decode(file_get_contents('php://stdin'), true) as $each) {
    echo verify($each['body'], $each['signature'], $each['secret']) ? "true\\n" : "false\\n";
}
"""
MAIN_GO: Final = """package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	var given []struct{ Body, Signature, Secret string }
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	for _, each := range given {
		fmt.Println(Verify([]byte(each.Body), each.Signature, each.Secret))
	}
}
"""
MAIN_RUBY: Final = """
require "json"
require_relative "snippet"
JSON.parse($stdin.read).each do |each|
  puts verify(each["body"].b, each["signature"], each["secret"])
end
"""


@cache
def cases() -> tuple[Sample, ...]:
    """Made once: each is a world of its own."""
    return tuple(samples())


def snippets(language: str) -> list[str]:
    """The page's blocks in that language, in order: `verify`, and lines with libraries."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)


def lines(language: str) -> list[str]:
    found = snippets(language)[1].splitlines()
    assert len(found) == 3
    return found


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except REFUSALS:
        return True
    return False


@pytest.mark.parametrize("line", lines("python"))
def test_the_packages_from_pypi_accept_our_deliveries_and_refuse_others(line: str) -> None:
    code = compile(line, str(PAGE), "eval")
    for case in cases():
        got = case.delivered
        names = {"body": got.body, "headers": got.headers, "secret": got.secret} | LIBRARIES
        said = not refused(lambda: eval(code, names))  # noqa: B023, S307 - our own page
        assert said == case.accepted, case.name


@pytest.mark.interop
def test_the_packages_from_npm_accept_our_deliveries_and_refuse_others(node: str) -> None:
    asked = lines("javascript")
    given = {"lines": asked, "deliveries": [case.delivered.as_json() for case in cases()]}
    done = subprocess.run(
        [node, "webhooks.mjs"],
        cwd=HERE,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    expected = [case.accepted for case in cases()]
    for line, answers in zip(asked, json.loads(done.stdout), strict=True):
        assert answers == expected, line
        print(f"{sum(answers)} accepted, {len(answers) - sum(answers)} refused by {line}")


def questions() -> list[tuple[str, dict[str, str | None], bool]]:
    """For the page's own `verify`: the cases, headers that are no signature, and none at all."""
    [fresh] = delivered()
    headers = ["", "t", "v1", "t=,v1=", "=,,==", f"{fresh.signature.split(',')[0]},v1=é"]
    headers.append(fresh.signature.replace("v1=", "v0="))
    headers.append(fresh.signature + "0")
    malformed = [
        Sample(
            header,
            replace(fresh, headers=fresh.headers | {"Checkout-Signature": header}),
            accepted=False,
        )
        for header in headers
    ]
    asked: list[tuple[str, dict[str, str | None], bool]] = [
        (
            case.name,
            {
                "body": case.delivered.body.decode(),
                "signature": case.delivered.signature,
                "secret": case.delivered.secret,
            },
            case.accepted,
        )
        for case in [*cases(), *malformed]
    ]
    unsigned = {"body": fresh.body.decode(), "signature": None, "secret": fresh.secret}
    return [*asked, ("no header", unsigned, False)]


def test_pythons_snippet_accepts_our_deliveries_and_refuses_others(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(snippets("python")[0], "utf-8")
    verify = runpy.run_path(str(file))["verify"]
    for name, given, accepted in questions():
        said = verify(str(given["body"]).encode(), given["signature"], given["secret"])
        assert said is accepted, name


@pytest.mark.interop
@pytest.mark.parametrize(
    ("language", "snippet", "main", "content", "command"),
    [
        ("javascript", "snippet.mjs", "main.mjs", MAIN_JS, ("node", "main.mjs")),
        ("php", "snippet.php", "main.php", MAIN_PHP, ("php", "main.php")),
        ("go", "snippet.go", "main.go", MAIN_GO, ("go", "run", "snippet.go", "main.go")),
        ("ruby", "snippet.rb", "main.rb", MAIN_RUBY, ("ruby", "main.rb")),
    ],
)
def test_the_snippet_accepts_our_deliveries_and_refuses_others(
    tmp_path: Path, language: str, snippet: str, main: str, content: str, command: tuple[str, ...]
) -> None:
    program = shutil.which(command[0])
    if program is None:
        assert language == "go" or "CI" not in os.environ, f"CI must have {command[0]}"
        pytest.skip(f"{command[0]} is not installed, which docs/webhooks.md's {language} needs")
    (tmp_path / snippet).write_text(snippets(language)[0], "utf-8")
    (tmp_path / main).write_text(content, "utf-8")
    asked = questions()
    done = subprocess.run(
        [program, *command[1:]],
        cwd=tmp_path,
        input=json.dumps([given for _, given, _ in asked]),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for (name, _, accepted), said in zip(asked, done.stdout.split(), strict=True):
        assert said == str(accepted).lower(), name
