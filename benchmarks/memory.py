"""`python -m benchmarks.memory`: the customer's waiting time by the memory of the pages' function.

Lambda gives a function a share of a processor that grows with its memory: a whole one at 1 769 MB.
Each built function is a process under Lambda's own runtime client, and a cgroup limits the process
to that share. Wallets are served over TLS, and all requests are signed and verified. DynamoDB and
the wallets are servers in this process, which has no limit. A wallet here answers in some
milliseconds; the time of a real one comes on top, and is the same for each size.

A step is "cold" if it is the first request of its environment. Its time includes the
initialization, for which Lambda gives a whole processor. It needs root on Linux, for the cgroup and
for the namespaces of the rehearsal, because the functions call public addresses only.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.cold import Bench
from sandbox.rehearsal import namespaces
from sandbox.rehearsal.__main__ import NAMES, SITE, Wallets, open_wallets
from sandbox.rehearsal.shop import CUSTOMER, set_up
from sandbox.template import resources
from sandbox.wallets import certificates
from sandbox.wallets.provider import Rules
from tests.artifacts.runtime import RuntimeApi, environment
from tests.support.merchant_api import gateway_event

SIZES: Final = (256, 512, 1024, 1769)  # MB
WHOLE: Final = 1769  # MB for which Lambda gives one processor
PERIOD: Final = 20_000  # microseconds: for so long a process has its share
COLD, WARM = 12, 40  # times that each step is measured
STEPS: Final = ("page", "wallet", "callback")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_BROWSER: Final = {
    "accept": "text/html",
    "accept-encoding": "gzip",
    "accept-language": "en",
    "content-type": "application/json",
}


@contextmanager
def share_of(size: int) -> Iterator[Path]:
    """Yield a file; a process whose id is written into it gets the share of `size` MB."""
    unified = (_CGROUPS / "cgroup.controllers").exists()
    group = (_CGROUPS if unified else _CGROUPS / "cpu") / f"checkout-memory-{os.getpid()}"
    quota = PERIOD * size // WHOLE
    group.mkdir()
    try:
        if unified:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


@dataclass
class Checkout:
    """A session on its way through the steps; each step needs what the one before returned."""

    session: str
    callback: str = ""
    cookies: tuple[str, ...] = ()  # of the browser that submitted the wallet

    def event(self, step: str) -> dict[str, Any]:
        """Return the request of a step."""
        page = f"/pay/{self.session}"
        if step == "page":
            return gateway_event("GET", page, "", _BROWSER, None)
        if step == "wallet":
            body = json.dumps({"wallet_address": CUSTOMER}).encode()
            return gateway_event("POST", f"{page}/wallet", "", _BROWSER, body)
        url = urlsplit(self.callback)
        event = gateway_event("GET", url.path, url.query, _BROWSER, None)
        return event | {"cookies": list(self.cookies)}


class Waits:
    """The pages' function, and the seconds that customers wait for its answers.

    The function trusts the certificates of the rehearsal's wallets, as it does in the rehearsal.
    """

    def __init__(self, bench: Bench, wallets: Wallets, authority: Path) -> None:
        self._bench = bench
        self._network = wallets.network
        trust = bench.build / "Trust" / "python"
        trust.mkdir(parents=True)
        (trust / "sitecustomize.py").symlink_to(SITE / "sitecustomize.py")
        (trust / "trusting.py").write_text("import sitecustomize\nfrom pay.app import handler\n")
        properties = resources("AWS::Serverless::Function")["PayFunction"]
        layers = [*properties["Layers"], {"Ref": "Trust"}]
        self._function = properties | {"Handler": "trusting.handler", "Layers": layers}
        self._variables = bench.variables | {"REHEARSAL_CA": str(authority)}

    @contextmanager
    def environment(self) -> Iterator[tuple[RuntimeApi, float]]:
        """Yield an environment of the function, and how long its initialization took."""
        began = time.perf_counter()
        place = (self._bench.build, "PayFunction", self._variables, self._bench.scratch)
        with environment(*place, self._function) as runtime:
            runtime.ready.wait(30)
            yield runtime, time.perf_counter() - began

    def prepared(self, api: RuntimeApi, pay: RuntimeApi, step: str) -> Checkout:
        """Return a new checkout for which `step` is the next one."""
        created = api.invoke(self._bench.events["ApiFunction"][0]).answer
        checkout = Checkout(json.loads(created["body"])["id"])
        if step == "callback":
            asked = self._answered(pay, checkout, "wallet")
            approved = self._network.approve(json.loads(asked["body"])["interact_url"])
            cookies = tuple(each.partition(";")[0] for each in asked["cookies"])
            checkout = replace(checkout, callback=approved, cookies=cookies)
        return checkout

    def wait(self, runtime: RuntimeApi, checkout: Checkout, step: str) -> float:
        """Return the seconds of one step."""
        began = time.perf_counter()
        self._answered(runtime, checkout, step)
        return time.perf_counter() - began

    def _answered(self, runtime: RuntimeApi, checkout: Checkout, step: str) -> dict[str, Any]:
        done = runtime.invoke(checkout.event(step))
        answer: dict[str, Any] = done.answer or {}
        assert answer.get("statusCode") == (303 if step == "callback" else 200), done
        return answer


def measured(
    waits: Waits, api: RuntimeApi, helper: RuntimeApi, size: int
) -> dict[str, list[float]]:
    """Return the seconds of each step at this size, by "cold" and "warm" and the step."""
    found: dict[str, list[float]] = {}
    with share_of(size) as share:
        for step in STEPS:
            for _ in range(COLD):
                checkout = waits.prepared(api, helper, step)
                with waits.environment() as (runtime, start):
                    share.write_text(str(runtime.process))
                    seconds = start + waits.wait(runtime, checkout, step)
                    found.setdefault(f"cold {step}", []).append(seconds)
            with waits.environment() as (runtime, _):
                share.write_text(str(runtime.process))
                for turn in range(WARM + 1):
                    checkout = waits.prepared(api, helper, step)
                    seconds = waits.wait(runtime, checkout, step)
                    if turn:
                        found.setdefault(f"warm {step}", []).append(seconds)
    return found


def main() -> int:
    """Print the table."""
    if not namespaces.inside():
        namespaces.enter("benchmarks.memory")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        scratch = Path(folder)
        namespaces.configure(NAMES, scratch)
        found = certificates.ensure(scratch / "ca", datetime.now(UTC), tuple(NAMES))
        wallets = open_wallets(running, found.server_context(), scratch, Rules(wait=0))
        bench = Bench(scratch)
        product = bench.variables | {"EXTRA_CA_FILE": str(found.authority)}
        _, bench.key = set_up(product, wallets.key_file, wallets.key_id)
        bench.events["ApiFunction"] = [bench.creation()]
        waits = Waits(bench, wallets, found.authority)
        api = running.enter_context(bench.running("ApiFunction"))
        helper, _ = running.enter_context(waits.environment())
        tables = {size: measured(waits, api, helper, size) for size in SIZES}
    sizes = " | ".join(f"{size} MB" for size in SIZES)
    print(f"| ms until the answer, half of the customers and 95 of 100 | {sizes} |")
    print("|---|" + "---|" * len(SIZES))
    for row in (f"{kind} {step}" for step in STEPS for kind in ("warm", "cold")):
        cells = [_cell(tables[size][row]) for size in SIZES]
        print(f"| {row} | " + " | ".join(cells) + " |")
    return 0


def _cell(seconds: list[float]) -> str:
    return f"{median(seconds) * 1000:.0f}, {quantiles(seconds, n=20)[-1] * 1000:.0f}"


if __name__ == "__main__":
    sys.exit(main())
