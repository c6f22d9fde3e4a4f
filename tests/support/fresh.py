"""Print what a function loads, makes and wires, as JSON: test_wiring.py runs it as a process.

Arguments: the module, and the name of the builder in `checkout.wiring` that it calls in Lambda. Any
request or random draw while the module is loaded ends the process.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from datetime import timedelta
from importlib import import_module
from typing import Any

LOADED: list[str] = []
REACHED: list[Any] = []
SET_BY_OPERATORS = ("retention", "allow_loopback", "a_window")
IN_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def resolve(*_: object) -> list[Any]:
    """Answer, once the module is loaded, that every name is that of this machine."""
    assert LOADED, "nothing may be sent"
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]


def connect(_: object, address: object) -> None:
    assert LOADED, "nothing may be sent"
    REACHED.append(address)
    raise ConnectionRefusedError


def refuse(*_: object) -> Any:
    raise AssertionError("nothing may be drawn at random")


def main(module: str, builder: str) -> dict[str, Any]:
    socket.socket.connect = connect  # type: ignore[method-assign]
    socket.getaddrinfo = resolve  # type: ignore[assignment]
    package = module.partition(".")[0]
    import_module(package)
    facts: dict[str, Any] = {"collects_while_loading": gc.isenabled()}
    facts["loaded_first"] = list(sys.modules)
    made = noted() if IN_LAMBDA else []
    import_module(module)
    LOADED.extend(sys.modules)
    facts["loaded"] = list(LOADED)
    facts["collects"], facts["collects_after"] = gc.isenabled(), gc.get_threshold()[0]
    facts["frozen"] = gc.get_freeze_count()
    if IN_LAMBDA and builder:
        wiring = import_module("checkout.wiring")
        facts["built"] = getattr(wiring, builder).cache_info().currsize
        facts["clients"] = list(made)
        facts |= wired(getattr(wiring, builder)())
    return facts


def noted() -> list[str]:
    """Refuse to draw at random, and return the list in which clients of AWS are noted."""
    import boto3

    from checkout.adapters import runtime

    made: list[str] = []
    make = boto3.client

    def client(name: str, **options: Any) -> Any:
        made.append(name)
        return make(name, **options)

    boto3.client = client
    vars(runtime)["system_random"] = refuse
    return made


def wired(built: Any) -> dict[str, Any]:
    """Try what was built as its function uses it."""
    from checkout.domain.ground.limits import REQUEST
    from open_payments.errors import NotSent

    of_sender = not hasattr(built, "clock")
    services = built.args[0] if of_sender else built
    now = services.clock.now()
    facts: dict[str, Any] = {"loopback": services.allow_loopback}
    if limits := getattr(services, "limits", None):
        facts["limited"] = any(limits.take(REQUEST, "192.0.2.1") for _ in range(100))
    if mail := getattr(services, "mail", None):
        facts["mail_is_made_once"] = mail._client() is mail._client()
    if of_sender:
        facts["refused"] = built.args[2].post("https://shop.example/", {}, b"", now=now).error
    wallets = getattr(services, "wallets", None)
    if wallets:
        wallets = wallets() if callable(wallets) else wallets
        asks = wallets.anonymous(deadline=now + timedelta(seconds=20))
        try:
            asks.get_wallet_address("https://wallet.example/alice")
        except NotSent as error:
            facts["refused"] = str(error)
    lists: dict[str, list[Any]] = {name: [] for name in SET_BY_OPERATORS}
    note_settings(services, lists, set())
    note_settings(wallets, lists, set())
    facts["settings"] = lists
    if hosts := getattr(services, "hosts", None):
        facts["saves_loopback"] = hosts.permitted("shop.example")
    return facts | {"reached": REACHED}


def note_settings(part: Any, found: dict[str, list[Any]], seen: set[int]) -> None:
    """Note each value of SET_BY_OPERATORS in all of our objects that are reached from this one."""
    ours = type(part).__module__.startswith("checkout.") and not isinstance(part, type)
    if not ours or id(part) in seen:
        return
    seen.add(id(part))
    slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
    values = {name: getattr(part, name, None) for name in (*slots, *getattr(part, "__dict__", ()))}
    for name, value in values.items():
        if name.lstrip("_") in found and not callable(value):
            plain = value.days if isinstance(value, timedelta) else value
            found[name.lstrip("_")].append(plain)
        note_settings(value, found, seen)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
