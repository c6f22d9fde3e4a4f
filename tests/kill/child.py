"""`python -m tests.kill.child PLACE`: runs one flow a line of standard input, each in a process of
its own, forked from this one, which has everything loaded and does nothing else.

A job is a JSON object: `flow` with its arguments, `die_at` (which of the marked calls; null: none)
and `after` (killed after it, not before). Told on standard output: `call NAME` for each marked
call, `error …` for what the flow raised, `end STATUS` with the wait status of the process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from checkout.domain.session.new import NewSession
from checkout.domain.session.record import LineItem, Session
from checkout.flows.merchant import api_keys, setup
from checkout.flows.session import prepare
from checkout.flows.session.create import create_session
from checkout.flows.session.lookup import load
from checkout.flows.webhooks.deliver import MessageResult
from checkout.services import PayServices
from checkout.version import VERSION
from open_payments.transports.public import PublicTransport
from tests.kill.place import (
    SWEEP_EVERY,
    Aws,
    Marked,
    SharedClock,
    one_round,
    product,
    sender,
    vault,
)
from tests.support.basics import come_back
from tests.support.partitions import few_partitions

AMOUNT: Final = 2000


def new_session() -> NewSession:
    return NewSession(
        line_items=(LineItem("usd", "Tea", None, AMOUNT, 1),),
        success_url="https://shop.example/thanks",
        cancel_url="https://shop.example/basket",
    )


def create(services: PayServices, marks: Marked, job: dict[str, Any]) -> None:
    key = api_keys.authenticate(services, f"Bearer {job['api_key']}", "POST")
    marks.armed = True
    create_session(services, key, new_session(), job["idempotency_key"])


def submit(services: PayServices, marks: Marked, job: dict[str, Any]) -> None:
    marks.armed = True
    prepare.submit_wallet(services, job["session"], job["wallet"])


def finish(services: PayServices, marks: Marked, job: dict[str, Any]) -> None:
    marks.armed = True
    come_back(services, job["session"], job["interact_ref"], job["hash"])


def reconcile(services: PayServices, marks: Marked, job: dict[str, Any]) -> None:
    """The scheduled job's rounds, until nothing is in flight or, after the end, due."""
    marks.armed = True
    while at_work(load(services, job["session"])):
        services.clock.sleep(SWEEP_EVERY.total_seconds())
        one_round(services)


def change(services: PayServices, marks: Marked, job: dict[str, Any]) -> None:
    """Give the merchant another key, with `key_id` and `pem` that of a key file, or wallet."""
    marks.armed = True
    if job["to"]:
        setup.move_wallet(services, job["wallet"], setup.NewMerchant("", job["to"]))
        return
    key = setup.NewMerchant("", job["wallet"], job["key_id"] or None, job["pem"] or None)
    setup.replace_key(services, key)


def at_work(session: Session) -> bool:
    return session.payment_in_flight or (session.terminal and session.needed_at is not None)


FLOWS: Final = {each.__name__: each for each in (create, submit, finish, reconcile, change)}


def delivering(deliver: Callable[[str], MessageResult], marks: Marked, job: dict[str, Any]) -> None:
    marks.armed = True
    deliver(job["event"])


def main() -> None:
    place = json.loads(sys.argv[1])
    aws = Aws.of(place)
    clock = SharedClock(Path(place["clock"]))
    sealed = vault()
    sealed.seal("", place=("", "", ""))  # derives the key, once for all children
    transport = PublicTransport(
        user_agent=f"checkout-sessions/{VERSION}", ca_file=place["ca_file"], allow_loopback=True
    )
    for line in sys.stdin:
        job = json.loads(line)
        process = os.fork()
        if process == 0:
            marks = Marked(clock, lambda name: tell(f"call {name}"), job["die_at"], job["after"])
            services = product(aws, sealed, clock, transport, marks)
            status = 0
            try:
                if job["flow"] == "deliver":
                    got = Path(place["got"])
                    delivering(sender(aws, sealed, clock, services.queue, got, marks), marks, job)
                else:
                    FLOWS[job["flow"]](services, marks, job)
            except BaseException as error:  # noqa: BLE001 - the parent decides what it means
                tell(f"error {error!r}")
                status = 1
            os._exit(status)
        _, status = os.waitpid(process, 0)
        tell(f"end {status}")


def tell(line: str) -> None:
    """At once and whole, whatever happens to this process next."""
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    with few_partitions():
        main()
