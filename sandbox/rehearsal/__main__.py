"""Rehearsal of a deployment without an AWS account: `python -m sandbox.rehearsal`.

Run it after `sam build`. The operator's commands deploy two stages side by side into one emulator,
which enforces the functions' roles. The steps are:

1. A first deployment fails on purpose and leaves nothing behind.
2. Both stages are deployed. The stage `dev` is a test stage and first has the form of version
   0.1.0. A developer signs up and sells there in Chromium, and the stage is upgraded.
3. Both stages sell. The schedules and the scheduled jobs (sweeps) of both are checked, and the
   alarms of the stage `default`, where a merchant also opens each page of the dashboard.
4. While both sell, the stage `default` is upgraded (once with an error), undone, deployed again and
   rolled back.
5. `default` is stopped and started while it sells. One of its tables is restored.
6. `default` is removed by commands that are interrupted after each change. `dev` still sells, and
   is then removed too.
7. A stage with an edge (CloudFront) in the form of version 0.1.0 is upgraded while it sells, and is
   removed.
8. The steps of the proving day are run.

The exit code is 0 only if every step succeeds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx2

from open_payments.signatures import SigningKey
from operations import proving_day
from sandbox import cloud
from sandbox.demo import DemoFailed
from sandbox.rehearsal import account, earlier, edge, namespaces, stack
from sandbox.rehearsal.servers import Front, Receiver
from sandbox.rehearsal.shop import MERCHANT, SHOP, Shop
from sandbox.rehearsal.stack import RehearsalFailed
from sandbox.rehearsal.traffic import Traffic
from sandbox.wallets import certificates
from sandbox.wallets.defaults import PORT_BASE, default_network
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Rules
from sandbox.wallets.server import Sleeper, WalletServers

CHECKOUT: Final = "checkout.example"
DEV: Final = "dev.example"
EDGE: Final = "edge.example"
# Addresses that programs treat as public. In the rehearsal's namespaces they are on loopback.
NAMES: Final = {
    CHECKOUT: "11.0.0.1",
    SHOP: "11.0.0.2",
    "wallets.example": "11.0.0.3",
    DEV: "11.0.0.4",
    EDGE: "11.0.0.5",
    "cedar.example": "11.0.1.1",
    "auth.cedar.example": "11.0.1.2",
    "harbor.example": "11.0.2.1",
    "auth.harbor.example": "11.0.2.2",
}
# Two stages of samconfig.toml, with their stacks and the domains that the rehearsal gives them.
STAGES: Final = {"default": ("checkout", CHECKOUT), "dev": ("checkout-dev", DEV)}
OLD: Final = "1.0.0"
NEW: Final = "2.0.0"
_WALLETS: Final = {
    PORT_BASE + 1: "https://cedar.example",
    PORT_BASE + 2: "https://auth.cedar.example",
    PORT_BASE + 101: "https://harbor.example",
    PORT_BASE + 102: "https://auth.harbor.example",
}
# The value contains blanks, quotes, a comma and a backslash, to test how commands pass it on.
_PROVIDERS: Final = (
    """Cedar "Bank", d'Or \\ Co | https://cedar.example/{name} | https://cedar.example"""
)
_STEPS: Final = {each.name for each in proving_day.STEPS}
SITE: Final = Path(__file__).parent / "site"
# The emulator refuses to create this alarm, which it tries after all other resources.
_IMPOSSIBLE: Final = """
  Impossible:
    Type: AWS::CloudWatch::Alarm
    DependsOn: [Graphs, HttpStage, EventsMapping, TasksMapping, SweepStandsStillAlarm]
    Properties:
      ComparisonOperator: GreaterThanThreshold
      EvaluationPeriods: 1
      Threshold: 1
      Metrics: [{ Id: one, Expression: "1 + 1" }]
"""


def main() -> int:
    """Run the rehearsal. Exit codes: 0 success, 1 failure with a message."""
    try:
        if not namespaces.inside():
            namespaces.enter("sandbox.rehearsal")
        with tempfile.TemporaryDirectory(prefix="checkout-rehearsal-") as scratch:
            began = time.monotonic()
            namespaces.configure(NAMES, Path(scratch))
            _rehearse(Path(scratch))
            _say("rehearsed", f"in {time.monotonic() - began:.0f} s")
    except (
        namespaces.NamespacesUnavailable,
        RehearsalFailed,
        DemoFailed,
        cloud.CloudError,
        httpx2.HTTPError,
    ) as failed:
        print(f"rehearsal: failed: {failed}", file=sys.stderr)
        return 1
    return 0


def _rehearse(scratch: Path) -> None:
    if not stack.BUILT.exists():
        raise RehearsalFailed("Nothing is built; run `make rehearse`.")
    with ExitStack() as running:
        found = certificates.ensure(scratch / "ca", datetime.now(UTC), tuple(NAMES))
        tls, ca_file = found.server_context(), found.authority
        port = cloud.free_port()
        more = {"AUTH": "true", "PYTHONPATH": str(SITE), "REHEARSAL_CA": str(ca_file)}
        os.environ["SANDBOX_CLOUD_ENV"] = str(stack.ROOT / ".venv-rehearsal")
        endpoint = running.enter_context(cloud.running_emulator(port, more=more))
        for host in (CHECKOUT, DEV):
            _serve(running, Front(host, tls, port))
        receiver = Receiver(SHOP, tls)
        _serve(running, receiver)
        wallets = open_wallets(running, tls, scratch)
        key = (wallets.key_file, wallets.key_id)
        operator = stack.Operator(endpoint, scratch)
        topic = account.alarm_topic(endpoint)
        for stage, (_, host) in STAGES.items():
            operator.choose(stage, **_parameters(endpoint, host, topic))
        operator.choose("dev", DeletionProtection="false", TestWallets="true", SignUp="open")
        operator.choose("default", RetentionDays="90", WalletProviders=_PROVIDERS)
        operator.choose(edge.STAGE, **_parameters(endpoint, EDGE, topic))
        operator.choose(edge.STAGE, DeletionProtection="false")
        shops = {
            stage: Shop(stage, name, f"https://{host}", ca_file, endpoint, receiver)
            for stage, (name, host) in STAGES.items()
        }
        behind = Shop(edge.STAGE, edge.STACK, f"https://{EDGE}", ca_file, endpoint, receiver)
        gate = edge.Edge(EDGE, tls, port)
        _serve(running, gate)
        try:
            old = _steps(operator, shops, key, topic)
            edge.rehearse(operator, old, behind, gate, key, _say)
            operator.choose(edge.STAGE, BaseUrl=None, EdgeProof=None)
            operator.choose(edge.STAGE, **_parameters(endpoint, EDGE, topic))
            _prove(operator, old, ca_file)
        except (RehearsalFailed, DemoFailed, httpx2.HTTPError):
            for name in (*(name for name, _ in STAGES.values()), edge.STACK):
                print(*stack.logs(endpoint, name), sep="\n", file=sys.stderr)
            raise


def _steps(
    operator: stack.Operator, shops: dict[str, Shop], key: tuple[Path, str], topic: str
) -> Path:
    """Rehearse two stages until both are removed. Return the template of the first release."""
    endpoint = operator.endpoint
    old = operator.package(stack.release(operator.folder / "old", OLD))
    new = operator.package(stack.release(operator.folder / "new", NEW))
    _say("packaged", "two releases")
    _fail_first(operator, old)
    with ThreadPoolExecutor() as both:
        begun = [
            both.submit(operator.deploy, "default", old),
            both.submit(operator.deploy_earlier, "dev", earlier.release(old)),
        ]
    for each in begun:
        each.result()
    _say("deployed", "two stages side by side, the test stage in the form of before")
    for line in stack.routes(endpoint, "checkout"):
        _say("route", line)
    shops["default"].open(operator.environment, *key)
    shops["dev"].try_out(operator.environment, _say)
    size = earlier.upgrade_test_stage(operator, "dev", old)
    _say("upgraded", f"the test stage, whose wallets are a stack of their own; {size} bytes moved")
    shops["dev"].wake_wallet()
    for shop in shops.values():
        shop.sell(print)
    for stage in STAGES:
        account.parameters(operator, stage, _say)
    shops["default"].cancel()
    shops["default"].settled()
    shops["default"].look_around(_say)
    account.schedules(endpoint, [each.stack for each in shops.values()], _say)
    for shop in shops.values():
        shop.sweep(_say)
    account.alarms(endpoint, "checkout", topic, _say)
    _upgrade(operator, old, new, shops)
    _stop_and_start(operator, shops)
    _restore(operator, shops["default"])
    _remove(operator, old)
    shops["dev"].sell(lambda line: None)
    shops["dev"].ticked(_say)
    shops["dev"].told_all(_say)
    account.stacks_metrics(endpoint, "checkout-dev")
    operator.run("remove", "dev")
    account.gone(endpoint, "checkout-dev", other=None)
    return old


def _prove(operator: stack.Operator, release: Path, ca_file: Path) -> None:
    """Make a dry run of the proving day, and remove its stage."""
    for line in operator.prove(release, ca_file).splitlines():
        if line.partition(" ")[0] in _STEPS:
            _say("proving", line)
    operator.run("remove", edge.STAGE)
    account.gone(operator.endpoint, edge.STACK, other=None)


def _parameters(endpoint: str, host: str, topic: str) -> dict[str, str]:
    """Return parameters of the template: a domain, an alarm topic, this machine's processor."""
    arch = "arm64" if os.uname().machine in ("arm64", "aarch64") else "x86_64"
    certificate = stack.client("acm", endpoint).request_certificate(DomainName=host)
    return {
        "Arch": arch,
        "DomainName": host,
        "CertificateArn": certificate["CertificateArn"],
        "AlarmTopicArn": topic,
        "TrafficShift": "AllAtOnce",
        "ClientLimit": "0",  # all customers have the same network address here
    }


def _fail_first(operator: stack.Operator, release: Path) -> None:
    """Let a first deployment fail at its last resource, and check that no resource is left."""
    try:
        operator.deploy("dev", _broken(release))
    except RehearsalFailed:
        account.gone(operator.endpoint, "checkout-dev", other=None)
        _say("failed", "a first deployment, on purpose; it left nothing")
        return
    raise RehearsalFailed("a deployment with an impossible resource succeeded")


def _broken(release: Path) -> Path:
    """Return the release's template with a resource that cannot be created."""
    text = release.read_text("utf-8")
    found = release.with_name("broken.yaml")
    found.write_text(text.replace("\nOutputs:\n", f"{_IMPOSSIBLE}Outputs:\n"), "utf-8")
    return found


def _upgrade(operator: stack.Operator, old: Path, new: Path, shops: dict[str, Shop]) -> None:
    """Upgrade one stage while both sell: with an error, without one, undone, and rolled back."""
    with Traffic([shop.buyer() for shop in shops.values()]) as traffic:
        watched = shops["default"]
        _expect(watched, OLD)
        try:
            operator.deploy("default", _broken(new))
        except RehearsalFailed:
            _expect(watched, OLD)
            _say("rolled back", "a failed upgrade, by CloudFormation")
        else:
            raise RehearsalFailed("an upgrade with an impossible resource succeeded")
        operator.choose("default", RetentionDays=None)
        operator.deploy("default", new)
        _expect(watched, NEW)
        _expect(shops["dev"], OLD)
        account.parameters(operator, "default", _say)
        _say("upgraded", f"to {NEW}; the other stage is at {OLD}")
        operator.run("versions", "default")
        _expect(watched, OLD)
        _say("undone", f"the upgrade; back at {OLD}")
        operator.deploy("default", new)
        _expect(watched, NEW)
        _say("deployed", f"{NEW} again, after the undo")
        operator.deploy("default", old)
        _expect(watched, OLD)
        _say("taken back", f"to {OLD}")
    _say("meanwhile", traffic.result())


def _stop_and_start(operator: stack.Operator, shops: dict[str, Shop]) -> None:
    """Stop a stage while it sells and cleans up, and start it. No task and no webhook may be lost.

    The emulator ignores the reserved concurrency of a function that is called by its alias. So the
    stopped stage still sells, and its events wait in the queue.
    """
    shop = shops["default"]
    with Traffic([each.buyer() for each in shops.values()]) as traffic:
        for _ in range(3):
            shop.cancel()
        operator.pause("stop", "default")
        account.nothing_reserved(operator.endpoint, shop.stack)
        rounds = stack.rounds(operator.endpoint, shop.stack)
        sold = shop.sold
        shops["dev"].ticked(_say)
        if stack.rounds(operator.endpoint, shop.stack) != rounds:
            raise RehearsalFailed("the sweep of a stage that was stopped runs")
        bought, waiting = shop.sold - sold, shop.messages("EventsQueueUrl")
        if waiting < bought or not waiting:
            raise RehearsalFailed(f"{waiting} events wait after {bought} purchases")
        _say("stopped", f"checkout, with {waiting} events in its queue")
        operator.pause("start", "default")
        shop.ticked(_say)
    _say("meanwhile", traffic.result())
    shop.settled()
    shop.told_all(_say)


def _restore(operator: stack.Operator, shop: Shop) -> None:
    """Fetch a table's contents of two moments, and replace the table by the second contents."""
    table = "checkout_sessions"
    first = _fetched(operator.restore("fetch", table, product=shop.product))
    shop.sell(lambda line: None)
    now = datetime.now(UTC).isoformat()
    try:
        operator.restore("fetch", table, "--at", now, product=shop.product)
    except RehearsalFailed as refused:
        if "is already there" not in str(refused):
            raise
    else:
        raise RehearsalFailed("a fetch has taken the table of another moment")
    tables = stack.client("dynamodb", operator.endpoint)
    tables.delete_table(TableName=f"good-{shop.stack}-{table}")
    second = _fetched(operator.restore("fetch", table, "--at", now, product=shop.product))
    if second <= first:
        raise RehearsalFailed(f"{second} records at the second moment, {first} at the first")
    operator.pause("stop", "default")
    operator.restore("swap", table, "--functions-are-stopped", product=shop.product)
    try:
        operator.pause("start", "default")
    except RehearsalFailed as refused:
        if "hold-refunds" not in str(refused):
            raise
    else:
        raise RehearsalFailed("a stage whose table was replaced has started without a word")
    operator.product("hold-refunds", shop.product)
    operator.pause("start", "default", "--refunds", "held")
    shop.sell(lambda line: None)
    shop.told_all(_say)
    _say("restored", f"{table}, of two moments with {first} and {second} records")


def _fetched(said: str) -> int:
    """Return the number of records in the restored table from the command's output."""
    return int(said.split(" records of ")[0].split()[-1])


def _expect(shop: Shop, version: str) -> None:
    found = shop.version()
    if found != version:
        raise RehearsalFailed(f"{shop.stack} is at {found}, not {version}")


def _remove(operator: stack.Operator, old: Path) -> None:
    """Check that a protected stage cannot be removed. Remove its protection and then the stage."""
    try:
        operator.run("remove", "default")
    except RehearsalFailed:
        account.refuses_deletion(operator.endpoint, "checkout")
        _say("protected", "the stack checkout and its tables refuse to be deleted")
    else:
        raise RehearsalFailed("a protected stage was removed")
    operator.choose("default", DeletionProtection="false")
    operator.deploy("default", old)
    changes = operator.remove_in_pieces("default")
    account.gone(operator.endpoint, "checkout", other="checkout-dev")
    _say("removed", f"the stack checkout, interrupted after each of {len(changes)} changes")
    _say("removed", "all its tables; checkout-dev has all of its own")


def _serve(running: ExitStack, server: Any) -> None:
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    running.callback(server.server_close)
    running.callback(server.shutdown)


@dataclass(frozen=True, slots=True)
class Wallets:
    """The wallet providers, and the file and id of the key registered for the merchant."""

    network: Network
    key_file: Path
    key_id: str


def open_wallets(
    running: ExitStack, tls: Any, scratch: Path, rules: Rules | None = None
) -> Wallets:
    """Serve the wallet providers until `running` ends."""
    sleeper = Sleeper()
    network = default_network(
        lambda: datetime.now(UTC),
        os.urandom,
        origin=_WALLETS.__getitem__,
        pages_origin="https://wallets.example",
        rules=rules,
        sleep=sleeper,
    )
    key = SigningKey.generate(str(uuid4()))
    network.register_key(MERCHANT, key.jwk().members())
    key_file = scratch / "private.key"
    key_file.touch(0o600)
    key_file.write_text(key.to_pem())
    servers = WalletServers(network, tls, sleeper)
    servers.start()
    running.callback(servers.close)
    return Wallets(network, key_file, key.key_id)


def _say(what: str, text: str) -> None:
    print(f"{what:<11} {text}".strip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
