"""The operator's command line: `python -m checkout.cli setup …` creates a merchant, against AWS or
the local world.

It reads the same settings as the functions (settings.py), prints what the operator needs once, and
exits 1 with a sentence on what to do when it refuses.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkout import wiring
from checkout.domain.errors import CheckoutError
from checkout.flows import setup
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
    chosen = parser.parse_args(arguments)
    try:
        done = _setup(chosen)
    except (setup.SetupRefused, SettingsError, CheckoutError) as refused:
        print(refused, file=sys.stderr)
        return 1
    print(f"merchant  {done.merchant.id}")
    print(f"wallet    {done.merchant.wallet_address} ({done.merchant.asset_code})")
    if done.api_key is None:
        print("The private key was replaced; API keys are unchanged.")
    else:
        print(f"API key   {done.api_key}")
        print("Keep the API key now: it is stored only as a hash and cannot be shown again.")
    return 0


def _setup(chosen: argparse.Namespace) -> setup.SetUp:
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
