"""Rehearsal: a stage whose functions CloudFront calls by their URLs, without the HTTP API.

The emulator has CloudFront with its functions, and the functions' URLs with their permissions. It
serves a distribution under CloudFront's own name only, so a server here has the stage's domain.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2

from sandbox.rehearsal import account, stack
from sandbox.rehearsal.servers import HTTPS
from sandbox.rehearsal.shop import Shop
from sandbox.rehearsal.stack import RehearsalFailed

STAGE: Final = "proving"  # of samconfig.toml
STACK: Final = "checkout-proving"
FUNCTIONS: Final = ("ApiFunction", "DashboardFunction", "PayFunction")
_PATHS: Final = ("/api/health", "/dashboard", "/pay/cs_unknown")
_GUESSES: Final[tuple[dict[str, str], ...]] = ({}, {"Edge-Secret": "guessed"})
_BODY_MAX: Final = 256 * 1024
_HOP: Final = {"connection", "host", "keep-alive", "transfer-encoding", "content-length"}

Say = Callable[[str, str], None]


class Edge(ThreadingHTTPServer):
    """The stage's domain with TLS, as a name of the distribution at `port` on loopback."""

    daemon_threads = True
    block_on_close = False
    distribution = ""  # CloudFront's own name for it

    def __init__(self, host: str, tls: ssl.SSLContext, port: int) -> None:
        super().__init__((host, HTTPS), _Viewer)
        self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.behind = port


class _Viewer(BaseHTTPRequestHandler):
    server: Edge

    def _relay(self) -> None:
        length = min(int(self.headers.get("Content-Length", "0")), _BODY_MAX)
        sent = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        sent |= {"Host": self.server.distribution, "X-Forwarded-Proto": "https"}
        behind = http.client.HTTPConnection("127.0.0.1", self.server.behind)
        behind.request(self.command, self.path, self.rfile.read(length) or None, sent)
        answer = behind.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        behind.close()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _relay

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def rehearse(
    operator: stack.Operator,
    release: Path,
    shop: Shop,
    gate: Edge,
    key: tuple[Path, str],
    say: Say,
) -> None:
    """Deploy, sell by the edge and not around it, change to `Edge=true`, and remove."""
    endpoint = operator.endpoint
    operator.deploy(STAGE, release)
    gate.distribution = stack.outputs(endpoint, STACK)["DomainTarget"]
    account.parameters(operator, STAGE, say)
    shop.open(operator.environment, *key)
    shop.sell(print)
    shop.look_around(say)
    shop.cancel()
    shop.settled()
    urls = _urls(endpoint)
    for url, path in zip(urls, _PATHS, strict=True):
        _refused(endpoint, url, path)
    told = sum('"DirectRequests":' in line for line in stack.logs(endpoint, STACK))
    if told != len(urls) * len(_GUESSES):
        raise RehearsalFailed(f"the functions have counted {told} requests around the edge")
    say("urls", f"CloudFront calls {len(urls)} functions; {told} requests around it are refused")
    operator.choose(STAGE, Edge="true")
    operator.deploy(STAGE, release)
    if stack.outputs(endpoint, STACK)["DomainTarget"] != gate.distribution:
        raise RehearsalFailed("the edge has another address with the HTTP API behind it")
    if stack.physical(endpoint, STACK, "AWS::Lambda::Url"):
        raise RehearsalFailed("functions of a stage without URLs have some")
    say("edge", "the HTTP API behind it, at the same address")
    operator.run("remove", STAGE)
    account.gone(endpoint, STACK, other=None)


def _urls(endpoint: str) -> list[str]:
    """Return the URLs of the functions' aliases."""
    functions, names = stack.client("lambda", endpoint), stack.functions(endpoint, STACK)
    found = [
        functions.get_function_url_config(FunctionName=names[each], Qualifier="live")
        for each in FUNCTIONS
    ]
    return [each["FunctionUrl"] for each in found]


def _refused(endpoint: str, url: str, path: str) -> None:
    """Check that a function refuses requests to its own URL without the edge's secret."""
    name = (urlsplit(url).hostname or "").partition(".")[0]
    for headers in _GUESSES:
        answer = httpx2.get(f"{endpoint}/_aws/lambda-url/{name}{path}", headers=headers)
        if answer.status_code != 403:
            raise RehearsalFailed(f"{path} at a function's URL answers {answer.status_code}")
