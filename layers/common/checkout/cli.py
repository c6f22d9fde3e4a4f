"""The operator's command line, against AWS or the local world: `python -m checkout.cli setup …`
creates a merchant, `… re-encrypt` seals all merchants' secrets anew after a rotation of
ENCRYPTION_KEY.

It reads the same settings as the functions (settings.py), prints what the operator needs once, and
exits 1 with a sentence on what to do when it refuses.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkout import wiring
from checkout.domain.errors import CheckoutError
from checkout.flows import rotation, setup
from checkout.settings import SettingsError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m checkout.cli", description=__doc__)
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
    commands.add_parser(
        "re-encrypt",
        help="after a rotation: seal all merchants' secrets under the new ENCRYPTION_KEY",
    )
    chosen = parser.parse_args(arguments)
    run = {"setup": _set_up, "re-encrypt": _re_encrypt}[chosen.command]
    try:
        return run(chosen)
    except (setup.SetupRefused, SettingsError, CheckoutError) as refused:
        print(refused, file=sys.stderr)
        return 1


def _set_up(chosen: argparse.Namespace) -> int:
    done = _made(chosen)
    print(f"merchant  {done.merchant.id}")
    print(f"wallet    {done.merchant.wallet_address} ({done.merchant.asset_code})")
    if done.api_key is None:
        print("The private key was replaced; API keys are unchanged.")
    else:
        print(f"API key   {done.api_key}")
        print("Keep the API key now: it is stored only as a hash and cannot be shown again.")
    return 0


def _re_encrypt(chosen: argparse.Namespace) -> int:
    done = rotation.re_encrypt(wiring.pay_services(), tell=_tell)
    for merchant in done.unreadable:
        print(f"{merchant}: neither key opens its secrets; they are unchanged.", file=sys.stderr)
    for merchant in done.busy:
        print(f"{merchant}: was being changed by others; run the command again.", file=sys.stderr)
    if done.renewed:
        print("Run it again in ten minutes: the old key can go when nothing is left to seal anew.")
    elif done.complete:
        print("All merchants' secrets are sealed under the first key of ENCRYPTION_KEY.")
    return 0 if done.complete else 1


def _tell(progress: rotation.Progress) -> None:
    print(f"{progress.looked_at} merchants looked at, {progress.renewed} sealed anew", flush=True)


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


if __name__ == "__main__":
    sys.exit(main())
