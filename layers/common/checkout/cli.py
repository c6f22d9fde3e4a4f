"""The operator's command line, for a deployment on AWS or the local one of `make dev`.

`checkout setup` creates a merchant. `checkout invite` invites a person. `checkout webhook` sets,
shows or tests a webhook endpoint. `checkout shards` spreads the lists of a merchant with very many
sessions over more shards. `checkout re-encrypt` encrypts all merchants' secrets again after a
rotation of ENCRYPTION_KEY. `checkout hold-refunds` makes all refunds of restored tables wait for a
person. `checkout erase` removes a customer from all stored records. `checkout merchants` lists the
merchants. `checkout suspend` and `checkout pause` stop sales, and `checkout resume` starts them
again. `checkout revoke` ends an API key. `checkout find` finds the session that a log line names.
`checkout show` prints a stored record without its secrets.

The command line reads the same settings as the functions (DATABASE_URL and so on, see settings.py).
After an error it prints the remedy and exits with status 1. `python -m checkout.cli` runs the same
command.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, NoRegionError

from checkout import wiring
from checkout.domain.erasure import Customer
from checkout.domain.ground.errors import CheckoutError, ParameterInvalid, ResourceMissing
from checkout.domain.ground.grammar import SESSION_ID, email_of
from checkout.domain.ground.ids import api_key_hash
from checkout.domain.ground.parts import PARTS
from checkout.domain.merchant.people import Role, SignUp
from checkout.domain.merchant.record import Merchant, Ownership, Suspension
from checkout.domain.webhooks.event_types import COMPLETED, OPTIONAL
from checkout.domain.webhooks.record import Format
from checkout.flows import erase, show
from checkout.flows.merchant import rotation, settings, setup, suspension
from checkout.flows.people import people
from checkout.flows.refund import hold
from checkout.flows.webhooks import endpoints
from checkout.services import DashboardServices
from checkout.settings import SettingsError
from checkout.version import VERSION
from open_payments import wallet_address

if TYPE_CHECKING:
    from checkout.adapters.dynamo.erasure import DynamoRecords

NEW: Final = "new"  # stands for the id of a new endpoint


def main(
    arguments: list[str] | None = None,
    services: Callable[[], DashboardServices] = wiring.dashboard_services,
    records: Callable[[], DynamoRecords] = wiring.records,
) -> int:
    """Run one command and return its exit status.

    The status is 1 after an error, and if the program that reads the output, such as `head`, has
    ended.
    """
    try:
        try:
            return _run(arguments, services, records)
        finally:
            sys.stdout.flush()  # flushed here, because an error at exit cannot be caught
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 1


def _run(
    arguments: list[str] | None,
    services: Callable[[], DashboardServices],
    records: Callable[[], DynamoRecords],
) -> int:
    parser = command_line()
    chosen = parser.parse_args(arguments)
    if region := os.environ.get("AWS_REGION"):
        os.environ.setdefault("AWS_DEFAULT_REGION", region)  # boto3 does not read AWS_REGION
    if chosen.command == "webhook" and chosen.events and not chosen.url:
        parser.error("--events requires --url")
    commands: dict[str, Callable[[], int]] = {
        "setup": lambda: _set_up(chosen),
        "invite": lambda: _invite(services(), chosen),
        "webhook": lambda: _webhook(services(), chosen),
        "shards": lambda: _spread(services(), chosen),
        "erase": lambda: _erase(services(), records(), chosen),
        "re-encrypt": _re_encrypt,
        "hold-refunds": lambda: _hold_refunds(services(), records()),
        "show": lambda: _show_record(services(), chosen.id),
        "merchants": lambda: _list_merchants(services()),
        "suspend": lambda: _suspend(services(), chosen),
        "resume": lambda: _resume(services(), chosen),
        "pause": lambda: _told(suspension.pause_all(services()), "paused"),
        "revoke": lambda: _revoke(services(), chosen),
        "find": lambda: _find(services(), records(), chosen.reference),
    }
    try:
        return commands[chosen.command]()
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
    command.add_argument(
        "--name",
        default="",
        help="shown to customers on the checkout page (default: the wallet's public name)",
    )
    command.add_argument(
        "--wallet-address", required=True, help="for example https://wallet.example/shop"
    )
    command.add_argument(
        "--key-id", help="id of the wallet's developer key (a UUID); without it, a key is created"
    )
    command.add_argument("--private-key", help="that key's file, PEM (PKCS#8, Ed25519)")
    command.add_argument("--by-make", action="store_true", help=argparse.SUPPRESS)
    again = command.add_mutually_exclusive_group()
    again.add_argument(
        "--new-api-key",
        action="store_true",
        help="make another API key for the merchant of this wallet",
    )
    again.add_argument(
        "--replace-key",
        action="store_true",
        help="replace the private key of the merchant of this wallet; without --key-id, by a key "
        "that the service makes",
    )
    again.add_argument(
        "--new-wallet", metavar="URL", help="change the wallet that the merchant is paid into"
    )
    command = commands.add_parser(
        "invite", help="make a link with which a person can sign in, or sign up with a new shop"
    )
    _add_whose(command).add_argument(
        "--new-shop",
        action="store_true",
        help="invite the person to sign up with a new shop, for which they give wallet and name; "
        "needs SIGN_UP",
    )
    command.add_argument("--name", required=True, help="the person's name, for the audit log")
    command.add_argument(
        "--role", choices=[*Role], default=Role.OWNER, help="role of the person (default: owner)"
    )
    command = commands.add_parser("webhook", help="set, show or test a merchant's webhook endpoint")
    _add_whose(command)
    command.add_argument(
        "--endpoint",
        metavar="ID",
        help="the endpoint to change (we_…), by default the first; `new` with --url adds one",
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument("--url", help="send the events to this https URL from now on")
    what.add_argument(
        "--roll-secret",
        type=_hours,
        metavar="HOURS",
        help="roll the signing secret; the previous one stays valid for HOURS (0 to 168)",
    )
    what.add_argument("--test", action="store_true", help="send a test event")
    what.add_argument("--remove", action="store_true", help="remove the endpoint")
    command.add_argument(
        "--events",
        nargs="+",
        default=[],
        choices=sorted(OPTIONAL),
        metavar="TYPE",
        help=f"with --url: also send these events: {', '.join(sorted(OPTIONAL))}",
    )
    command.add_argument(
        "--format",
        choices=[*Format],
        help="with --url: the form of the bodies (default: unchanged; native for a new endpoint)",
    )
    command = commands.add_parser(
        "shards",
        help="spread a merchant's lists over several shards, for hundreds of sessions a second",
    )
    _add_whose(command)
    command.add_argument(
        "--count",
        type=int,
        choices=PARTS,
        required=True,
        help="the number of shards, which cannot be lowered",
    )
    commands.add_parser(
        "re-encrypt",
        help="after a rotation: encrypt all merchants' secrets again with the new ENCRYPTION_KEY",
    )
    commands.add_parser(
        "hold-refunds",
        help="after a restore of tables: have a person approve each refund that has not ended",
    )
    command = commands.add_parser(
        "erase",
        help="remove a customer from all stored records, at the customer's request",
    )
    whom = command.add_mutually_exclusive_group(required=True)
    whom.add_argument(
        "--wallet-address", help="the customer's wallet address, as the dashboard shows it"
    )
    whom.add_argument("--email", help="the e-mail address that the customer or the shop gave")
    whom.add_argument("--session", metavar="ID", help="a session (cs_…) of the customer")
    command = commands.add_parser("show", help="print a stored record, without its secrets")
    command.add_argument(
        "id",
        metavar="ID",
        help="of a session (cs_…), an event (evt_…), a merchant (mer_…) or a link (plink_…), "
        "or the hash of an API key or an idempotency key",
    )
    commands.add_parser("merchants", help="list all merchants, and whether they are suspended")
    command = commands.add_parser(
        "suspend", help="stop a merchant's new sales; payments that have begun finish"
    )
    _add_whose(command)
    command = commands.add_parser(
        "resume", help="end the suspension of a merchant, or the pause of all sales"
    )
    _add_whose(command).add_argument(
        "--all", action="store_true", help="all merchants that `checkout pause` has suspended"
    )
    commands.add_parser("pause", help="suspend all merchants that are not suspended")
    command = commands.add_parser("revoke", help="revoke an API key; its next request is refused")
    command.add_argument(
        "key",
        metavar="KEY",
        help="the key (sk_…); with --merchant its last four characters are enough",
    )
    command.add_argument("--merchant", help="the merchant's id (mer_…)")
    command = commands.add_parser("find", help="find the session that a log line names")
    command.add_argument(
        "reference", metavar="REF", help="the line's `session`, 12 hexadecimal digits"
    )
    return parser


def _add_whose(command: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    whose = command.add_mutually_exclusive_group(required=True)
    whose.add_argument("--merchant", help="the merchant's id (mer_…)")
    whose.add_argument("--wallet-address", help="or its wallet address")
    return whose


def _set_up(chosen: argparse.Namespace) -> int:
    done = _made(chosen)
    print(f"merchant  {done.merchant.id}")
    print(f"wallet    {done.merchant.wallet_address} ({done.merchant.asset_code})")
    if done.merchant.client is not None:
        print(f"client    {done.merchant.client} (wallets read its key there)")
    if done.api_key is None:
        print(
            "From now on, payments use this. Payments that have already begun continue unchanged."
        )
        print("API keys are unchanged.")
    else:
        print(f"API key   {done.api_key}")
        print("Keep the API key now: it is stored only as a hash and cannot be shown again.")
        print("Invite the owner, who manages people and refunds, with a passkey:")
        print(f"  {_inviting(chosen, done.merchant.id)}")
        print(f"Without these rights the key signs in at {wiring.base_url()}/dashboard, too.")
    return 0


def _inviting(chosen: argparse.Namespace, merchant: str) -> str:
    """Return the command that invites a person, written in the way in which `setup` was called."""
    if chosen.by_make:
        return f'make invite MERCHANT={merchant} NAME="Ada Lovelace"'
    called = sys.argv[0] if Path(sys.argv[0]).name == "checkout" else "checkout"
    return f'{called} invite --merchant {merchant} --name "Ada Lovelace"'


def _spread(services: DashboardServices, chosen: argparse.Namespace) -> int:
    merchant = settings.spread(services, _named(services, chosen).id, chosen.count)
    print(f"merchant  {merchant.id}")
    print(f"shards    {merchant.parts}")
    if settings.keys_behind(services, merchant):
        print("An API key was created meanwhile: run the command again.", file=sys.stderr)
        return 1
    return 0


def _re_encrypt() -> int:
    done = rotation.re_encrypt(wiring.pay_services(), on_progress=_print_progress)
    for merchant in done.unreadable:
        print(
            f"{merchant}: neither key can decrypt its secrets, so they are unchanged.",
            file=sys.stderr,
        )
    for merchant in done.busy:
        print(
            f"{merchant}: other requests were changing this merchant. Run the command again.",
            file=sys.stderr,
        )
    if done.renewed:
        print(
            "Run the command again in ten minutes. When nothing is left to encrypt, remove the old "
            "key."
        )
    elif done.complete:
        print("All merchants' secrets are encrypted with the first key of ENCRYPTION_KEY.")
    return 0 if done.complete else 1


def _print_progress(progress: rotation.Progress) -> None:
    print(f"{progress.checked} merchants checked, {progress.renewed} encrypted again", flush=True)


def _hold_refunds(services: DashboardServices, records: DynamoRecords) -> int:
    done = hold.hold_all(services, records)
    print(f"{done.held} refunds are held until a person approves or cancels them.")
    if done.busy:
        print(f"{done.busy} refunds were being changed: run the command again.", file=sys.stderr)
    if done.unreadable:
        print(f"{done.unreadable} refunds cannot be read.", file=sys.stderr)
        print("See docs/operating.md, A record that cannot be read.", file=sys.stderr)
    return 0 if done.complete else 1


def _erase(services: DashboardServices, records: DynamoRecords, chosen: argparse.Namespace) -> int:
    customer = _whom(services, records, chosen)
    done = erase.erase(services, records, customer, on_progress=_print_erased)
    for reason, count in done.kept.items():
        print(f"kept: {count} {reason}", file=sys.stderr)
    if done.complete and done.erased:
        print("Nothing of this customer is left in the tables.")
    elif done.complete:
        print(
            "No record contains this address or session. Give it exactly as the dashboard shows it."
        )
    else:
        print("Run it again later: see docs/operating.md, Erase a customer.", file=sys.stderr)
    return 0 if done.complete else 1


def _whom(
    services: DashboardServices, records: DynamoRecords, chosen: argparse.Namespace
) -> Customer:
    """Return the customer with the given wallet address, e-mail address or session."""
    if chosen.email is not None:
        email = email_of(chosen.email)
        if email is None:
            raise ParameterInvalid("This is not an e-mail address.")
        return erase.with_email(services, records, email)
    if chosen.session is not None:
        if SESSION_ID.fullmatch(chosen.session) is None:
            raise ParameterInvalid("This is not the id of a session.")
        return Customer(sessions=frozenset({chosen.session}))
    try:
        url = wallet_address.parse(chosen.wallet_address, allow_ports=services.allow_loopback)
    except ValueError as refused:
        raise ParameterInvalid(str(refused)) from None
    return Customer((url,))


def _print_erased(report: erase.Report) -> None:
    counts = (f"{report.erased[kind]} of {read} {kind}" for kind, read in report.read.items())
    print("erased:", ", ".join(counts) or "nothing is stored", flush=True)


def _show_record(services: DashboardServices, record_id: str) -> int:
    print(json.dumps(show.record(services, record_id), indent=2))
    return 0


def _list_merchants(services: DashboardServices) -> int:
    for merchant in suspension.every(services):
        how = "  signed up" if merchant.ownership is not None else ""
        since = f"{merchant.created_at:%Y-%m-%d}"
        shown = f"{merchant.id}  {_state(merchant):9}  {since}"
        print(f"{shown}  {merchant.name}  {merchant.wallet_address}{how}")
    return 0


def _state(merchant: Merchant) -> str:
    if merchant.ownership is Ownership.UNPROVEN:
        return "unproven"
    if merchant.suspended is None:
        return "sells"
    return "paused" if merchant.suspended is Suspension.WITH_ALL else "suspended"


def _suspend(services: DashboardServices, chosen: argparse.Namespace) -> int:
    return _print_state(suspension.suspend(services, _named(services, chosen).id))


def _resume(services: DashboardServices, chosen: argparse.Namespace) -> int:
    if chosen.all:
        return _told(suspension.resume_all(services), "resumed")
    return _print_state(suspension.resume(services, _named(services, chosen).id))


def _print_state(merchant: Merchant) -> int:
    print(f"merchant  {merchant.id} ({merchant.name})")
    print(f"state     {_state(merchant)}")
    return 0


def _told(changed: suspension.Changed, done: str) -> int:
    print(f"{changed.done} merchants {done}.")
    for merchant in changed.again:
        print(
            f"{merchant}: other requests were changing this merchant. Run the command again.",
            file=sys.stderr,
        )
    return 1 if changed.again else 0


def _revoke(services: DashboardServices, chosen: argparse.Namespace) -> int:
    if chosen.merchant:
        listed = services.api_keys.of(chosen.merchant)
        found = [each for each in listed if chosen.key.endswith(each.last_four)]
    else:
        key = services.api_keys.find(api_key_hash(chosen.key))
        found = [key] if key else []
    if len(found) != 1:
        raise ResourceMissing(
            "No such key."
            if not found
            else "Several keys end with these characters. Give the whole key."
        )
    made = suspension.revoke(services, found[0])
    print(f"merchant  {found[0].merchant}")
    print(f"revoked   {found[0].label}")
    if made is not None:
        print(f"API key   {made.plain}")
        print(
            "This was the merchant's last key without an expiry date, so give them this new one. "
            "It is not shown again."
        )
    return 0


def _find(services: DashboardServices, records: DynamoRecords, reference: str) -> int:
    found = show.find(services, records, reference)
    merchant = services.merchants.get(found.merchant) if found.merchant else None
    print(f"session   {found.id}")
    print(f"merchant  {found.merchant or 'not known'}{f' ({merchant.name})' if merchant else ''}")
    if found.session is None:
        print("status    its record cannot be read")
        print("next      docs/operating.md, A record that cannot be read")
        return 1
    print(f"status    {found.session.status_at(services.clock.now())}")
    print(f"next      {show.next_step(found.session)}")
    return 0


def _made(chosen: argparse.Namespace) -> setup.SetUp:
    services = wiring.pay_services()
    if chosen.new_api_key:
        return setup.add_api_key(services, chosen.wallet_address, name=chosen.name or "Another key")
    if chosen.by_make and not chosen.wallet_address:
        raise setup.SetupRefused(
            "Give the wallet: make merchant WALLET=https://wallet.example/shop"
        )
    if bool(chosen.key_id) != bool(chosen.private_key):
        pair = "KEY_ID= and PRIVATE_KEY=" if chosen.by_make else "--key-id and --private-key"
        raise setup.SetupRefused(f"Give both {pair}, or neither.")
    text = None
    if chosen.private_key:
        try:
            text = Path(chosen.private_key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise setup.SetupRefused(f"The file {chosen.private_key} cannot be read.") from None
    new = setup.NewMerchant(
        name=chosen.name,
        wallet_address=chosen.new_wallet or chosen.wallet_address,
        key_id=chosen.key_id or None,
        private_key_text=text,
    )
    if chosen.new_wallet:
        return setup.move_wallet(services, chosen.wallet_address, new)
    if chosen.replace_key:
        return setup.replace_key(services, new)
    try:
        return setup.set_up(services, new)
    except setup.AlreadyMerchant as known:
        if not chosen.by_make:
            raise
        keys = f"Make another API key at {services.base_url}/dashboard/keys."
        raise setup.AlreadyMerchant(known.merchant, keys) from None


def _invite(services: DashboardServices, chosen: argparse.Namespace) -> int:
    if chosen.new_shop:
        if services.sign_up is SignUp.CLOSED:
            raise ParameterInvalid("Nobody can sign up here: set the parameter SignUp first.")
        made = people.invite_shop(services, name=chosen.name)
        print("merchant  a new one, of their own")
    else:
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
        form = {"format": Format(chosen.format)} if chosen.format else {}
        done = endpoints.configure(
            services,
            merchant.id,
            url=chosen.url,
            events=tuple(chosen.events),
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
        print(f"events    {' '.join(endpoint.asked or (COMPLETED, *endpoint.events))}")
        print(f"format    {endpoint.format}")
        print(f"endpoint  {endpoint.id}")
    if secret is not None:
        print(f"secret    {secret}")
        print("Keep the secret now: it cannot be shown again.")


if __name__ == "__main__":
    sys.exit(main())
