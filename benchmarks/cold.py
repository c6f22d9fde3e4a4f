"""`python -m benchmarks.cold`: cold starts and memory of the built functions, beside a bare one.

It takes what `make rehearsal-build` has built for this machine, and runs each function under
Lambda's own runtime client (tests/artifacts/runtime.py): a process with the function and its layers
only. A cold start is from the spawn of the process to its first answer. All functions and the bare
one (benchmarks/cold_bare), which has the same common layer, take turns. CPU is the whole process's.
DynamoDB is a server in this process, whose time is not counted.

Then each function gets a burst of events; its peak memory is read from the kernel (VmHWM).
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from botocore.exceptions import ClientError

from benchmarks.cost import memory
from checkout.adapters import dynamo
from checkout.adapters.runtime import SystemClock, system_random
from checkout.domain.ground.ids import api_key_hash, new_api_key
from sandbox.cloud import table_definitions
from tests.artifacts.runtime import PYTHON, RuntimeApi, environment
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.deployment import sqs_event
from tests.support.merchant_api import SESSIONS, a_body, gateway_event
from tests.support.samples import a_key, a_merchant

BUILD: Final = Path(".aws-sam/rehearsal")
PREFIX: Final = "cold"
ROUNDS: Final = 25
BURST: Final = 200
BARE: Final = "BareFunction"
# The bounds of a cold start's CPU, in cold starts of the bare function: what was measured on
# 2026-11-28 and a twentieth more (benchmarks/ratios.py).
MOST: Final = {
    "ApiFunction": 1.18,
    "PayFunction": 1.46,
    "DashboardFunction": 1.44,
    "ExpirerFunction": 1.05,
    "WebhookSenderFunction": 0.90,
}
FILLED: Final = 0.6  # share of the memory size that may be used

Event = dict[str, Any]


class Tables(ThreadingHTTPServer):
    """DynamoDB's protocol over tables in memory."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tables = InMemoryDynamoDb(table_definitions(PREFIX))
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: Tables
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        operation = self.headers["X-Amz-Target"].rpartition(".")[2]
        name = re.sub("(?<=[a-z])([A-Z])", r"_\1", operation).lower()
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 200
        try:
            with self.server.lock:
                found = getattr(self.server.tables, name)(**asked)
        except ClientError as error:
            status, found = 400, {"__type": error.response["Error"]["Code"]}
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Start:
    """A cold start: seconds of the clock and of the process's CPU."""

    wall: float
    cpu: float


class Bench:
    """The built functions, and events that they answer."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.build = scratch / "build"
        self.build.mkdir()
        for artifact in BUILD.iterdir():
            (self.build / artifact.name).symlink_to(artifact.resolve())
        shutil.copytree(Path(__file__).parent / "cold_bare", self.build / BARE)
        compiled = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
        subprocess.run([PYTHON, *compiled, self.build / BARE], check=True)
        self.server = Tables()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self.variables = {
            "DATABASE_URL": f"dynamodb:///{PREFIX}",
            "TABLES": PREFIX,
            "CLIENT_LIMIT": "0",  # all events of a burst come from one client
            "BASE_URL": "https://pay.example",
            "ENCRYPTION_KEY": "11" * 32,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
        }
        self.key = new_api_key(system_random)
        now = SystemClock().now()
        held = a_key(hash=api_key_hash(self.key), merchant="mer_1", last_used_at=now)
        merchants = dynamo.DynamoMerchants(self.server.tables, PREFIX)
        assert merchants.add(a_merchant(id="mer_1", private_key="sealed"), held) is None
        with self.running("ApiFunction") as api:
            session = json.loads(api.invoke(self.creation()).answer["body"])["id"]
            for _ in range(100):
                api.invoke(self.creation())
        sent = {"accept": "text/html", "accept-encoding": "gzip", "accept-language": "en"}
        self.events: dict[str, list[Event]] = {
            BARE: [self.creation()],
            "ApiFunction": [self.creation(), self._list()],
            "PayFunction": [gateway_event("GET", f"/pay/{session}", "", sent, None)],
            "DashboardFunction": [gateway_event("GET", "/dashboard/sign-in", "", sent, None)],
            "ExpirerFunction": [{}],
            "WebhookSenderFunction": [sqs_event(json.dumps({"event": "evt_unknown"}))],
        }

    def creation(self) -> Event:
        """Return the creation of a session by the merchant of `key`."""
        return gateway_event("POST", SESSIONS, "", self._headers(), json.dumps(a_body()).encode())

    def _list(self) -> Event:
        return gateway_event("GET", SESSIONS, "limit=100", self._headers(), None)

    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}

    @contextmanager
    def running(self, name: str) -> Iterator[RuntimeApi]:
        """Yield a process of this function."""
        own = {"Handler": "app.handler", "Layers": [{"Ref": "CommonLayer"}]}
        function = own if name == BARE else None
        with environment(self.build, name, self.variables, self.scratch, function) as runtime:
            yield runtime

    def start(self, name: str) -> Start:
        """Start a process, and end it after its first answer."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        with self.running(name) as runtime:
            _answered(runtime, self.events[name][0])
            wall = time.perf_counter() - begun
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Start(wall, cpu)

    def peak(self, name: str) -> float:
        """Return the megabytes that a process took at most, after a burst of events."""
        with self.running(name) as runtime:
            for number in range(BURST):
                _answered(runtime, self.events[name][number % len(self.events[name])])
            status = Path(f"/proc/{runtime.process}/status").read_text("ascii")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024


def _answered(runtime: RuntimeApi, event: Event) -> None:
    done = runtime.invoke(event)
    assert done.error is None, done.error
    assert (done.answer or {}).get("statusCode", 200) < 400, done.answer


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(Path(scratch))
        starts: dict[str, list[Start]] = {name: [] for name in bench.events}
        for turn in range(ROUNDS + 1):
            for name, found in starts.items():
                start = bench.start(name)
                if turn:  # the first start reads the files from the disk
                    found.append(start)
        peaks = {name: bench.peak(name) for name in bench.events}
    least = {side: median(getattr(each, side) for each in starts[BARE]) for side in ("wall", "cpu")}
    print("| cold start | ms | times the bare | ms of CPU | the middle half | ratio | at most |")
    print("|---|---|---|---|---|---|---|")
    for name, found in starts.items():
        wall, cpu = median(each.wall for each in found), median(each.cpu for each in found)
        low, _, high = quantiles([each.cpu * 1000 for each in found], n=4)
        ratio = cpu / least["cpu"]
        print(
            f"| {name} | {wall * 1000:.0f} | {wall / least['wall']:.2f} | {cpu * 1000:.0f} "
            f"| {low:.0f} to {high:.0f} | {ratio:.2f} | {MOST.get(name, '')} |"
        )
    print(f"\n| memory | peak MB after {BURST} events | of MB | ratio | at most |")
    print("|---|---|---|---|---|")
    for name, peak in peaks.items():
        size = memory("ApiFunction" if name == BARE else name) * 1024
        print(f"| {name} | {peak:.0f} | {size:.0f} | {peak / size:.2f} | {FILLED} |")


if __name__ == "__main__":
    main()
