"""The operator's command line, against AWS or the local world.

`checkout setup` creates a merchant, `checkout invite` makes the link by which a person becomes a
member of one, `checkout webhook` sets, shows or tests its webhook endpoint, `checkout shards`
spreads the lists of a merchant with very many sessions, `checkout re-encrypt` encrypts all
merchants' secrets again after a rotation of ENCRYPTION_KEY, and `checkout erase` removes a
customer's wallet from everything that is kept.

It reads the same settings as the functions (DATABASE_URL and so on, see settings.py). When it
refuses, it prints what to do and exits with status 1. `python -m checkout.cli` is the same command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError, NoRegionError

from checkout import wiring
from checkout.domain.erasure import Wallet
from checkout.domain.errors import CheckoutError, ParameterInvalid, ResourceMissing
from checkout.domain.merchant import Merchant
from checkout.domain.people import Role
from checkout.domain.shards import SHARDS
from checkout.domain.webhooks import COMPLETED, OPTIONAL, Format, endpoint_id
from checkout.flows import erase
from checkout.flows.merchant import people, rotation, settings, setup
from checkout.flows.webhooks import endpoints
from checkout.open_payments import wallet_address
from checkout.ports.erasure import Records
from checkout.ports.services import DashboardServices
from checkout.settings import SettingsError
from checkout.version import VERSION

NEW: Final = "new"  # in place of the id of an endpoint that is to be added
_OPTIONAL: Final = {event.rpartition(".")[2]: event for event in OPTIONAL}


def main(
    arguments: list[str] | None = None,
    services: Callable[[], DashboardServices] = wiring.dashboard_services,
    records: Callable[[], Records] = wiring.records,
) -> int:
    """Run one command and return the exit status."""
    parser = command_line()
    chosen = parser.parse_args(arguments)
    if region := os.environ.get("AWS_REGION"):
        os.environ.setdefault("AWS_DEFAULT_REGION", region)  # the only one that boto3 reads
    if chosen.command == "webhook" and chosen.events and not chosen.url:
        parser.error("--events goes with --url")
    try:
        if chosen.command == "setup":
            return _set_up(chosen)
        if chosen.command == "invite":
            return _invite(services(), chosen)
        if chosen.command == "webhook":
            return _webhook(services(), chosen)
        if chosen.command == "shards":
            return _spread(services(), chosen)
        if chosen.command == "erase":
            return _erase(services(), records(), chosen)
        return _re_encrypt()
    except NoRegionError:
        print("No AWS region: set AWS_REGION, for example to eu-central-1.", file=sys.stderr)
        return 1
    except (setup.SetupRefused, SettingsError, CheckoutError, BotoCoreError) as refused:
        print(refused, file=sys.stderr)
        return 1


def command_line() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="checkout",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("setup", help="create a merchant and its first API key")
    command.add_argument("--name", required=True, help="shown to customers on the checkout page")
    command.add_argument(
        "--wallet-address", required=True, help="for example https://wallet.example/shop"
    )
    command.add_argument("--key-id", help="id of the wallet's developer key (a UUID)")
    command.add_argument("--private-key", type=Path, help="that key's file, PEM (PKCS#8, Ed25519)")
    again = command.add_mutually_exclusive_group()
    again.add_argument(
        "--new-api-key",
        action="store_true",
        help="another API key for a wallet that is set up already",
    )
    again.add_argument(
        "--replace-key",
        action="store_true",
        help="store this private key for a wallet that is set up already",
    )
    command = commands.add_parser("invite", help="make a link by which a person can sign in")
    _add_whose(command)
    command.add_argument("--name", required=True, help="the person's name, as the audit log has it")
    command.add_argument("--role", choices=[*Role], default=Role.OWNER, help="owner unless given")
    command = commands.add_parser("webhook", help="set, show or test a merchant's webhook endpoint")
    _add_whose(command)
    command.add_argument(
        "--endpoint",
        metavar="ID",
        help="which one (we_…), the first unless given; with --url, new adds one",
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument("--url", help="where its events are sent from now on (https)")
    what.add_argument(
        "--roll-secret",
        type=_hours,
        metavar="HOURS",
        help="make a new secret; the one before it is valid for so long (0 to 168)",
    )
    what.add_argument("--test", action="store_true", help="send a test event")
    what.add_argument("--remove", action="store_true", help="send nothing any more")
    command.add_argument(
        "--events",
        nargs="+",
        default=[],
        choices=sorted(_OPTIONAL),
        help="with --url: send these as well",
    )
    command.add_argument(
        "--format",
        choices=[*Format],
        help="with --url: the form of the bodies (native unless it was set before)",
    )
    command = commands.add_parser(
        "shards", help="spread a merchant's lists, for hundreds of sessions a second"
    )
    _add_whose(command)
    command.add_argument(
        "--count", type=int, choices=SHARDS, required=True, help="never less than before"
    )
    commands.add_parser(
        "re-encrypt",
        help="after a rotation: encrypt all merchants' secrets again with the new ENCRYPTION_KEY",
    )
    command = commands.add_parser(
        "erase",
        help="remove a customer's wallet from everything that is kept, at the customer's request",
    )
    command.add_argument(
        "--wallet-address", required=True, help="the customer's, as the dashboard shows it"
    )
    return parser


def _add_whose(command: argparse.ArgumentParser) -> None:
    whose = command.add_mutually_exclusive_group(required=True)
    whose.add_argument("--merchant", help="the merchant's id (mer_…)")
    whose.add_argument("--wallet-address", help="or its wallet address")


def _set_up(chosen: argparse.Namespace) -> int:
    done = _made(chosen)
    print(f"merchant  {done.merchant.id}")
    print(f"wallet    {done.merchant.wallet_address} ({done.merchant.asset_code})")
    if done.api_key is None:
        print("The private key was replaced; API keys are unchanged.")
    else:
        print(f"API key   {done.api_key}")
        print("Keep the API key now: it is stored only as a hash and cannot be shown again.")
        print(f"Invite the owner: checkout invite --merchant {done.merchant.id} --name NAME")
    return 0


def _spread(services: DashboardServices, chosen: argparse.Namespace) -> int:
    merchant = settings.spread(services, _named(services, chosen).id, chosen.count)
    print(f"merchant  {merchant.id}")
    print(f"shards    {merchant.shards}")
    if settings.keys_behind(services, merchant):
        print("An API key was created meanwhile: run the command again.", file=sys.stderr)
        return 1
    return 0


def _re_encrypt() -> int:
    done = rotation.re_encrypt(wiring.pay_services(), tell=_tell)
    for merchant in done.unreadable:
        print(f"{merchant}: neither key opens its secrets; they are unchanged.", file=sys.stderr)
    for merchant in done.busy:
        print(f"{merchant}: was being changed by others; run the command again.", file=sys.stderr)
    if done.renewed:
        print("Run it again in ten minutes: remove the old key when nothing is left to encrypt.")
    elif done.complete:
        print("All merchants' secrets are encrypted with the first key of ENCRYPTION_KEY.")
    return 0 if done.complete else 1


def _tell(progress: rotation.Progress) -> None:
    print(f"{progress.checked} merchants checked, {progress.renewed} encrypted again", flush=True)


def _erase(services: DashboardServices, records: Records, chosen: argparse.Namespace) -> int:
    typed = chosen.wallet_address
    try:
        url = wallet_address.parse(typed, allow_ports=services.allow_loopback)
    except ValueError as refused:
        raise ParameterInvalid(str(refused)) from None
    done = erase.erase(services, records, Wallet(url), tell=_tell_erased)
    for reason, count in done.kept.items():
        print(f"kept: {count} {reason}", file=sys.stderr)
    if done.complete and done.erased:
        print("Nothing of this wallet is left in the tables.")
    elif done.complete:
        print("No record has this wallet: give its address as the dashboard shows it.")
    else:
        print("Run it again later: see docs/operating.md, Erase a customer.", file=sys.stderr)
    return 0 if done.complete else 1


def _tell_erased(report: erase.Report) -> None:
    counts = (f"{report.erased[kind]} of {read} {kind}" for kind, read in report.read.items())
    print("erased:", ", ".join(counts) or "nothing is stored", flush=True)


def _made(chosen: argparse.Namespace) -> setup.SetUp:
    services = wiring.pay_services()
    if chosen.new_api_key:
        return setup.add_api_key(services, chosen.wallet_address, name=chosen.name)
    if not chosen.key_id or chosen.private_key is None:
        raise setup.SetupRefused("Give --key-id and --private-key.")
    try:
        text = chosen.private_key.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise setup.SetupRefused(f"The file {chosen.private_key} cannot be read.") from None
    new = setup.NewMerchant(
        name=chosen.name,
        wallet_address=chosen.wallet_address,
        key_id=chosen.key_id,
        private_key_text=text,
    )
    return setup.replace_key(services, new) if chosen.replace_key else setup.set_up(services, new)


def _invite(services: DashboardServices, chosen: argparse.Namespace) -> int:
    merchant = _named(services, chosen)
    made = people.invite_to(services, merchant.id, name=chosen.name, role=Role(chosen.role))
    print(f"merchant  {merchant.id}")
    print(f"member    {made.invitation.name} ({made.invitation.role})")
    print(f"link      {made.link}")
    print("Send the link to this person only: it works once, within 7 days.")
    return 0


def _webhook(services: DashboardServices, chosen: argparse.Namespace) -> int:
    merchant, secret = _named(services, chosen), None
    new, endpoint = chosen.endpoint == NEW, chosen.endpoint
    if chosen.url:
        events = tuple(_OPTIONAL[name] for name in chosen.events)
        form = {"format": Format(chosen.format)} if chosen.format else {}
        done = endpoints.configure(
            services,
            merchant.id,
            url=chosen.url,
            events=events,
            endpoint=None if new else endpoint,
            add=new,
            more=form,
        )
        merchant, secret = done.merchant, done.secret
    elif chosen.roll_secret is not None:
        done = endpoints.roll_secret(
            services, merchant.id, overlap=chosen.roll_secret, endpoint=endpoint
        )
        merchant, secret = done.merchant, done.secret
    elif chosen.remove:
        merchant = endpoints.remove(services, merchant.id, endpoint=endpoint)
    elif chosen.test:
        test = endpoints.ping(services, merchant.id, endpoint=endpoint)
        print(f"test      {test.event} is on its way")
    _show(merchant, secret)
    return 0


def _hours(text: str) -> timedelta:
    if not text.isascii() or not text.isdecimal() or len(text) > 3:
        raise argparse.ArgumentTypeError("must be a whole number of hours, 0 to 168")
    return timedelta(hours=int(text))


def _named(services: DashboardServices, chosen: argparse.Namespace) -> Merchant:
    if chosen.merchant:
        merchant = services.merchants.get(chosen.merchant)
    else:
        merchant = services.merchants.find_by_wallet(chosen.wallet_address)
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    return merchant


def _show(merchant: Merchant, secret: str | None) -> None:
    print(f"merchant  {merchant.id}")
    if not merchant.endpoints:
        print("webhook   none")
    for endpoint in merchant.endpoints:
        disabled = " (disabled: it answered 410)" if endpoint.disabled_at is not None else ""
        print(f"webhook   {endpoint.url}{disabled}")
        print(f"events    {' '.join((COMPLETED, *endpoint.events))}")
        print(f"format    {endpoint.format}")
        print(f"endpoint  {endpoint_id(merchant.id, endpoint)}")
    if secret is not None:
        print(f"secret    {secret}")
        print("Keep the secret now: it cannot be shown again.")


if __name__ == "__main__":
    sys.exit(main())
