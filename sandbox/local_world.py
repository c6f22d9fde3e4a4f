"""Local world: start and stop AWS emulator, wallets, merchant, gateway and shop, in that order.

The gateway stands in for API Gateway and calls the checkout's functions. Every server listens on
loopback only. Data is kept in the folder of the `Place` (place.py). Missing files are regenerated
if possible; any other damage is reported, with the next step.
"""

from __future__ import annotations

import os
import secrets
import shlex
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
from botocore.config import Config

from checkout.adapters import aws
from sandbox import cloud, outbox
from sandbox.cloud import CloudError
from sandbox.demo import world_answers
from sandbox.outbox import Outbox
from sandbox.place import Place
from sandbox.server import AsgiServer
from sandbox.shop import BODY_MAX, Shop
from sandbox.wallets import certificates
from sandbox.wallets.__main__ import restore, save
from sandbox.wallets.clients import fetch_on_loopback
from sandbox.wallets.defaults import default_network
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Rules
from sandbox.wallets.server import Sleeper, WalletServers

if TYPE_CHECKING:
    from checkout.services import PayServices

MERCHANT: Final = "Harbor Coffee"
_SAVE_EVERY: Final = 1.0  # seconds
_PREFIX: Final = "checkout"
# The parameters SenderConcurrency and TasksConcurrency, with values for an account with 1 000
# executions. The template's defaults are for a new account, which has 10.
EVENTS_AT_ONCE: Final = 50
TASKS_AT_ONCE: Final = 2


@contextmanager
def running_world(place: Place) -> Iterator[None]:
    """Run the whole local world. Raises CloudError if it cannot start.

    The product's code runs in this process and reads its environment variables, which this function
    sets. So a process can run only one local world.
    """
    with ExitStack() as running:
        try:
            _start(place, running)
        except (OSError, ValueError) as error:
            raise CloudError(f"The local world cannot start: {error}") from error
        yield


def environment(place: Place, endpoint: str, stack: cloud.Stack, key: str) -> dict[str, str]:
    """Return the environment variables of the functions and of the setup command.

    `key` is the access key of this world's emulator.
    """
    return {
        "DATABASE_URL": stack.database_url,
        "BASE_URL": place.checkout,
        "ENCRYPTION_KEY_SECRET": stack.encryption_key_secret,
        "DETAILS_KMS_KEY": stack.details_kms_key,
        "EVENTS_QUEUE_URL": stack.events_queue_url,
        "TASKS_QUEUE_URL": stack.tasks_queue_url,
        "ALLOW_LOOPBACK_WALLETS": "true",
        "WALLET_PROVIDERS": _providers(place),
        "SIGN_UP": "open",
        "RECEIPT_SENDER": "receipts@checkout.example",
        "AWS_ENDPOINT_URL_SESV2": f"http://127.0.0.1:{place.outbox_port}",
        "EXTRA_CA_FILE": str(place.ca_file.resolve()),
        "CLIENT_LIMIT": "6000",  # all clients here have the same address
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": cloud.REGION,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": key,
        # Ignore the developer's own AWS account and proxy.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "localhost,127.0.0.1",
        # Metrics are for CloudWatch, not for a terminal.
        "POWERTOOLS_METRICS_DISABLED": "true",
        "POWERTOOLS_LOG_LEVEL": "WARNING",
    }


def _providers(place: Place) -> str:
    """Return the two local providers as the setting WALLET_PROVIDERS."""
    forms = (
        ("Cedar Bank", place.customer_wallet, "cedar"),
        ("Harbor Wallet", place.merchant_wallet, "harbor"),
    )
    return ";".join(
        f"{name} | {wallet.rpartition('/')[0]}/{{name}} | {place.wallets}/ | | {_logo(logo)}"
        for name, wallet, logo in forms
    )


def _logo(name: str) -> str:
    """Return a drawing of the folder `logos` as base64, for WALLET_PROVIDERS."""
    drawing = (Path(__file__).parent / "logos" / f"{name}.svg").read_bytes()
    return b64encode(drawing.strip()).decode()


def join(place: Place) -> None:
    """Load the settings of the running local world into this process, for the product's code.

    Raises CloudError if no local world is running.
    """
    if not world_answers(place):
        raise CloudError(
            f"No local world is running at {place.checkout}. Start one with `make dev`, or set "
            "SANDBOX_PORT to its first port."
        )
    lines = place.environment_file.read_text("utf-8").splitlines()
    _adopt(dict(shlex.split(line)[1].split("=", 1) for line in lines))


def _start(place: Place, running: ExitStack) -> None:
    for port, user in place.ports().items():
        if port != place.emulator_port:  # an emulator that a dead process has left is stopped below
            cloud.require_free(port, user)
    place.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = f"world{secrets.token_hex(16)}"
    emulator = cloud.running_emulator(place.emulator_port, place.folder / "emulator", key=key)
    endpoint = running.enter_context(emulator)
    stack = cloud.create_stack(endpoint, _PREFIX, key)
    running.enter_context(_wallets(place))
    _set_environment(environment(place, endpoint, stack, key), place.environment_file)
    _serve(place, running, cloud.client("sqs", endpoint, key), stack)


def _set_environment(values: Mapping[str, str], file: Path) -> None:
    _adopt(values)
    _write_private(file, "".join(f"export {name}='{value}'\n" for name, value in values.items()))


def _adopt(values: Mapping[str, str]) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "ENCRYPTION_KEY", "no_proxy"):
        os.environ.pop(name, None)
    os.environ.update(values)


def _wait_longer() -> None:
    """Make the stores wait ten seconds for the emulator, which is slow on a busy machine."""
    for name in ("USUAL", "BRIEF"):
        setattr(aws, name, getattr(aws, name).merge(Config(read_timeout=10)))


def _serve(place: Place, running: ExitStack, sqs: Any, stack: cloud.Stack) -> None:
    _wait_longer()
    # These modules are imported only now, because they read the settings on import or first call.
    from checkout import wiring
    from sandbox import triggers
    from sandbox.gateway import GatewayServer, functions

    services = wiring.pay_services()
    api_key = _merchant(place, services)
    by_name = functions()
    gateway = GatewayServer(place.base, by_name)
    gateway.start()
    running.callback(gateway.close)
    for trigger in (
        triggers.schedule(by_name["ExpirerFunction"]),
        triggers.Mapping(by_name["TasksFunction"], sqs, stack.tasks_queue_url, TASKS_AT_ONCE),
        triggers.Mapping(
            by_name["WebhookSenderFunction"],
            sqs,
            stack.events_queue_url,
            EVENTS_AT_ONCE,
        ),
    ):
        running.callback(trigger.close)
    client = httpx2.Client(
        base_url=f"http://127.0.0.1:{place.base}",
        headers={"Authorization": f"Bearer {api_key}"},
        trust_env=False,
        timeout=20,
    )
    running.callback(client.close)
    shop = Shop(client, own=place.shop, checkout=place.checkout, wallets=place.wallets)
    for server in (
        AsgiServer(place.shop_port, shop.answer, body_max=BODY_MAX),
        AsgiServer(place.outbox_port, Outbox().answer, body_max=outbox.BODY_MAX),
    ):
        server.start()
        running.callback(server.close)


@contextmanager
def _wallets(place: Place) -> Iterator[None]:
    """Run the wallet providers, and save their state every second and at the end."""
    folder = place.wallets_folder
    sleeper = Sleeper()
    network = default_network(
        lambda: datetime.now(UTC),
        os.urandom,
        port_base=place.wallets_port,
        rules=Rules(wait=place.wait),
        fetch=fetch_on_loopback,
        sleep=sleeper,
    )
    saved = folder / "wallets.json"
    if not saved.exists():
        _fund(place, network)
    restore(network, saved)
    found = certificates.ensure(folder, datetime.now(UTC))
    _trust(place, found.authority)
    servers = WalletServers(network, found.server_context(), sleeper)
    servers.start()
    ending = threading.Event()

    def keep_saved() -> None:
        while not ending.wait(_SAVE_EVERY):
            save(servers.changes(), saved)

    saver = threading.Thread(target=keep_saved, daemon=True)
    saver.start()
    try:
        yield
    finally:
        ending.set()
        saver.join()
        servers.close()
        save(network.dump(), saved)


def _fund(place: Place, network: Network) -> None:
    """Give the demo shop an opening balance: with fees, a full refund costs more than the sale."""
    shop = network.account(place.merchant_wallet)
    assert shop is not None
    shop.book(datetime.now(UTC), "Opening balance", 100 * 10**shop.asset_scale)


def _trust(place: Place, authority: Path) -> None:
    """Write one CA file with the local `authority` and, if set, those of EXTRA_CA_FILE."""
    texts = [authority.read_text("utf-8")]
    other = os.environ.get("EXTRA_CA_FILE", "")
    if other and Path(other).resolve() != place.ca_file.resolve():
        try:
            texts.append(Path(other).read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            raise CloudError(f"EXTRA_CA_FILE: {other} cannot be read.") from None
    place.ca_file.write_text("\n".join(texts), "utf-8")


def _merchant(place: Place, services: PayServices) -> str:
    """Return the shop's API key. Set the merchant up at the first start.

    A new API key is created if the key file is missing or its key is not valid. The API key has all
    scopes, so that a developer can try the whole dashboard with it.
    """
    from checkout.domain.ground.errors import ApiKeyInvalid, ApiKeyMissing, PermissionMissing
    from checkout.domain.merchant.people import Scope
    from checkout.flows.merchant import api_keys, setup

    whole = tuple(Scope)
    new = setup.NewMerchant(name=MERCHANT, wallet_address=place.merchant_wallet, scopes=whole)
    try:
        try:
            done = setup.set_up(services, new)
        except setup.AlreadyMerchant as already:
            if not setup.key_opens(services, already.merchant):  # the emulator's files are lost
                setup.replace_key(services, new)
            known = _read(place.api_key_file)
            try:
                api_keys.authenticate(services, f"Bearer {known}", "POST", "/v1/refunds")
            except (ApiKeyInvalid, ApiKeyMissing, PermissionMissing):
                wallet = place.merchant_wallet
                done = setup.add_api_key(services, wallet, name="Another key", scopes=whole)
            else:
                return known
    except setup.SetupRefused as refused:
        raise CloudError(f"The demo shop could not be set up: {refused}") from None
    assert done.api_key is not None
    _write_private(place.api_key_file, done.api_key)
    return done.api_key


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _write_private(file: Path, text: str) -> None:
    partial = file.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)
    partial.replace(file)
