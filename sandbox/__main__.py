"""Command line of the local world (sandbox/__init__.py): dev, demo, listen, trigger."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from checkout.domain.ground.errors import CheckoutError
from sandbox import deployed, webhooks
from sandbox.cloud import CloudError
from sandbox.demo import Demo, DemoFailed, world_answers
from sandbox.local_world import running_world
from sandbox.place import Place, default_place
from sandbox.terminal import say


def main() -> int:
    """Run a command. Exit codes: 0 success, 1 failure with a message, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m sandbox", description="Run and use the local world."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("dev", help="run the local world until Ctrl-C")
    demo = commands.add_parser("demo", help="buy one thing without a browser")
    demo.add_argument("--wallet", help="the customer's wallet address (default: Alice's)")
    demo.add_argument("--refund", help="refund this much of the 20.00, as in 5.00")
    listens = commands.add_parser("listen", help="forward the shop's webhooks to a local address")
    listens.add_argument("--forward-to", required=True, help="such as http://localhost:3000/hooks")
    listens.add_argument("--at", default="", help="a deployment's URL; API_KEY has a key of it")
    listens.add_argument("--form", choices=deployed.FORMS, default="native")
    triggers = commands.add_parser("trigger", help="cause a webhook event")
    triggers.add_argument("event", choices=webhooks.EVENTS)
    triggers.add_argument("--at", default="", help="a deployment's URL; API_KEY has a key of it")
    triggers.add_argument("--wallet", help="there, the customer's wallet address")
    options = parser.parse_args()
    logs = logging.StreamHandler()
    logs.setFormatter(_WithTrace("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[logs])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        place = default_place()
        if options.command == "dev":
            return _dev(place)
        if getattr(options, "at", ""):
            return _deployed(options)
        if options.command == "listen":
            return webhooks.listen(place, options.forward_to)
        if options.command == "trigger":
            return webhooks.trigger(place, options.event)
        return _demo(place, options.wallet, options.refund)
    except (CloudError, CheckoutError, ValueError) as refused:
        say(refused, to=sys.stderr)
    except DemoFailed as failed:
        say(f"{options.command}: failed: {failed}", to=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _dev(place: Place) -> int:
    try:
        with running_world(place):
            print("ready; press Ctrl-C to stop (data is kept)\n")
            print(f"shop      {place.shop}")
            print(f"API       {place.checkout}/api")
            print(f"dashboard {place.checkout}/dashboard  (sign in with the API key)")
            print(f"sign up   {place.checkout}/dashboard/sign-up  (with {place.bob})")
            print(f"wallets   {place.wallets}")
            print(f"e-mails   {place.outbox}")
            print(f"pay as    {place.customer_wallet}")
            print(f"API key   export API_KEY=$(cat {_shown(place.api_key_file)})", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        print("\nstopped; data is kept")
    return 0


def _deployed(options: argparse.Namespace) -> int:
    """Run `listen` or `trigger` against a deployment."""
    at = deployed.deployment(options.at)
    if options.command == "listen":
        with closing(deployed.Feed(at)) as feed:
            deployed.listen(feed, options.forward_to, form=options.form, say=say)
    else:
        deployed.trigger(at, options.event, wallet=options.wallet, say=say)
    return 0


def _demo(place: Place, wallet: str | None, refund: str | None) -> int:
    """Make a purchase in the running local world, or in a temporary one, and refund `refund`."""
    if world_answers(place):
        _buy(place, wallet, refund)
        return 0
    with tempfile.TemporaryDirectory(prefix="checkout-demo-") as folder:
        own = replace(place, folder=Path(folder) / "world")
        with running_world(own):
            _buy(own, wallet, refund)
    return 0


def _buy(place: Place, wallet: str | None, refund: str | None) -> None:
    api_key = place.api_key_file.read_text("utf-8").strip()
    Demo(place, api_key=api_key, wallet=wallet or place.customer_wallet).run(refund=refund)


def _shown(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _interrupt(*_: Any) -> NoReturn:
    # Ignore further signals, which would interrupt the shutdown.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


class _WithTrace(logging.Formatter):
    """Log formatter that prints the traceback which the product adds to an unexpected error."""

    def format(self, record: logging.LogRecord) -> str:
        trace = getattr(record, "trace", [])
        return "\n".join([super().format(record), *trace])


if __name__ == "__main__":
    sys.exit(main())
