"""Lambda around one built function: its Runtime API on loopback, and Lambda's own runtime client.

The process has the built function, its layers, the standard library and the runtime client, and
nothing else: a package that is missing in a requirements file is missing here, too.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from sandbox.template import resources

PYTHON: Final = Path(__file__).parents[2] / ".venv-sam" / "bin" / "python"
# The runtime client, with what it needs itself.
CLIENT: Final = ("awslambdaric", "runtime_client", "simplejson", "snapshot_restore_py")
ANSWERED_WITHIN: Final = 30.0  # seconds
_API: Final = "/2018-06-01/runtime"


@dataclass(frozen=True)
class Invocation:
    """`error` is what the runtime client reported in place of an answer."""

    answer: Any
    error: Any = None


class RuntimeApi(ThreadingHTTPServer):
    """next, response, error and init error, for one environment."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Invocation] = queue.SimpleQueue()
        self.process: int | None = None
        self.ready = threading.Event()  # the environment is initialized

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The environment was ended while it waited for an event."""

    def invoke(self, event: Any) -> Invocation:
        self.events.put(event)
        return self.done.get(timeout=ANSWERED_WITHIN)


class _Handler(BaseHTTPRequestHandler):
    server: RuntimeApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each event costs 45 ms

    def do_GET(self) -> None:
        assert self.path == f"{_API}/invocation/next"
        self.server.ready.set()
        event = json.dumps(self.server.events.get()).encode()
        deadline = int((time.time() + ANSWERED_WITHIN) * 1000)
        self.send_response(200)
        self.send_header("Lambda-Runtime-Aws-Request-Id", str(uuid.uuid4()))
        self.send_header("Lambda-Runtime-Deadline-Ms", str(deadline))
        self.send_header(
            "Lambda-Runtime-Invoked-Function-Arn",
            "arn:aws:lambda:us-east-1:000000000000:function:built",
        )
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(event)))
        self.end_headers()
        self.wfile.write(event)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "null")
        failed = self.path.endswith("/error")
        self.server.done.put(Invocation(None, body) if failed else Invocation(body))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def environment(
    build: Path,
    name: str,
    variables: Mapping[str, str],
    scratch: Path,
    function: Mapping[str, Any] | None = None,
) -> Iterator[RuntimeApi]:
    """A Lambda environment of the built function `name`; its log is in `scratch`.

    `function` are its properties, if it is none of the template's.
    """
    function = function or resources("AWS::Serverless::Function")[name]
    layers = [build / layer["Ref"] / "python" for layer in function["Layers"]]
    path = [build / name, *layers, _client_alone(scratch)]
    api = RuntimeApi()
    thread = threading.Thread(target=api.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    with (scratch / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            # -S: without the packages of the environment that the interpreter is of.
            [str(PYTHON), "-S", "-m", "awslambdaric", function["Handler"]],
            cwd=build / name,
            env={
                **variables,
                "PYTHONPATH": ":".join(map(str, path)),
                "PYTHONDONTWRITEBYTECODE": "1",
                "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.server_port}",
                "AWS_LAMBDA_FUNCTION_NAME": name,
                "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
                "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
                "LAMBDA_TASK_ROOT": str(build / name),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    api.process = process.pid
    try:
        yield api
    finally:
        process.kill()  # as Lambda does
        process.wait()
        api.shutdown()
        api.server_close()


def _client_alone(scratch: Path) -> Path:
    """A folder with the runtime client, taken out of the environment that it is installed in."""
    folder = scratch / "client"
    if not folder.exists():
        folder.mkdir()
        [packages] = PYTHON.parents[1].glob("lib/python3.*/site-packages")
        for name in CLIENT:
            [found] = [each for each in packages.glob(f"{name}*") if "dist-info" not in each.name]
            (folder / found.name).symlink_to(found)
    return folder
