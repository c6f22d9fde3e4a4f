"""Rehearsal of a deployment: an earlier version's edge (CloudFront) becomes a stack of its own.

The stage sells meanwhile. The emulator serves a CloudFront distribution only under the
distribution's own name. So a server here listens at the stage's domain and relays to the emulator.
The server's attribute `target` takes the place of the domain's DNS record.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx2

from operations.proving_day import EDGE, proof_of
from sandbox.rehearsal import account, earlier, stack
from sandbox.rehearsal.servers import HTTPS
from sandbox.rehearsal.shop import Shop
from sandbox.rehearsal.stack import RehearsalFailed
from sandbox.rehearsal.traffic import Traffic

STAGE: Final = "proving"  # of samconfig.toml
STACK: Final = "checkout-proving"
_OWN: Final = f"{STACK}-edge"
_PATHS: Final = ("/api/health", "/dashboard", "/pay/cs_unknown")
_GUESSES: Final[tuple[dict[str, str], ...]] = ({}, {"Edge-Secret": "guessed"})
_BODY_MAX: Final = 256 * 1024
_HOP: Final = {"connection", "host", "keep-alive", "transfer-encoding", "content-length"}

Say = Callable[[str, str], None]


class Edge(ThreadingHTTPServer):
    """The stage's domain with TLS, in front of the emulator at `port` on loopback."""

    daemon_threads = True
    block_on_close = False
    target = ""  # CloudFront's name of the edge; if it is empty, requests go to the HTTP API

    def __init__(self, host: str, tls: ssl.SSLContext, port: int) -> None:
        super().__init__((host, HTTPS), _Viewer)
        self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.host = host
        self.behind = port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a connection that the client has closed."""


class _Viewer(BaseHTTPRequestHandler):
    server: Edge

    def _relay(self) -> None:
        length = min(int(self.headers.get("Content-Length", "0")), _BODY_MAX)
        sent = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        sent |= {"Host": self.server.target or self.server.host, "X-Forwarded-Proto": "https"}
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
    """Upgrade a stage with an edge, as docs/deploying.md describes it, and remove both stacks."""
    endpoint = operator.endpoint
    operator.deploy_earlier(STAGE, earlier.release(release), Edge="true")
    gate.target = stack.outputs(endpoint, STACK)["DomainTarget"]
    shop.open(operator.environment, *key)
    shop.sell(print)
    say("edge", "of an earlier version, in the stage's own stack")
    with Traffic([shop.buyer()]) as traffic:
        _upgrade(operator, release, gate)
    say("meanwhile", traffic.result())
    account.parameters(operator, STAGE, say)
    shop.sell(print)
    shop.look_around(say)
    shop.cancel()
    shop.settled()
    shop.told_all(say)
    _refused(endpoint)
    refused = len(_PATHS) * len(_GUESSES)
    told = sum('"DirectRequests":' in line for line in stack.logs(endpoint, STACK))
    if told != refused:
        raise RehearsalFailed(f"the functions have counted {told} requests around the edge")
    say("edge", f"of a stack of its own; {refused} requests around it are refused")
    operator.run("remove", STAGE)
    stack.delete(endpoint, _OWN)
    account.gone(endpoint, STACK, other=None)
    gate.target = ""


def _upgrade(operator: stack.Operator, release: Path, gate: Edge) -> None:
    """Move the domain to an edge in a stack of its own. Then replace the proof by the new one.

    The proof is the secret that the edge sends to the stage with each request. At first, the new
    edge sends the old proof. Once the domain has moved, the stage accepts both proofs, then the new
    edge sends its own proof, and at last the stage accepts only this one.
    """
    endpoint, chosen = operator.endpoint, operator.stage(STAGE)
    old = stack.physical(endpoint, STACK, "AWS::SecretsManager::Secret")["EdgeSecret"]
    described = stack.client("secretsmanager", endpoint).get_secret_value(SecretId=old)
    [api] = stack.physical(endpoint, STACK, "AWS::ApiGatewayV2::Api").values()
    parameters = {
        "HttpApiEndpoint": f"https://{api}.execute-api.us-east-1.amazonaws.com",
        "CertificateArn": chosen.parameters["CertificateArn"],
        "EdgeProof": described["SecretString"],
    }
    found = stack.apply(endpoint, _OWN, EDGE, parameters)
    stack.client("cloudfront", endpoint).update_domain_association(
        Domain=gate.host, TargetResource={"DistributionId": found["DistributionId"]}
    )
    gate.target = found["DomainTarget"]
    parameters["DomainName"] = gate.host
    if stack.apply(endpoint, _OWN, EDGE, parameters)["BaseUrl"] != f"https://{gate.host}":
        raise RehearsalFailed("the edge has another address than its domain")
    new = proof_of(found["ProofSecret"])
    operator.choose(
        STAGE,
        BaseUrl=f"https://{gate.host}",
        EdgeProof=f"{new},{proof_of(described['ARN'])}",
        DomainName=None,
        CertificateArn=None,
    )
    operator.deploy(STAGE, release)
    if stack.physical(endpoint, STACK, "AWS::CloudFront::Distribution"):
        raise RehearsalFailed("the stage's stack still has an edge")
    stack.apply(endpoint, _OWN, EDGE, {**parameters, "EdgeProof": ""})
    operator.choose(STAGE, EdgeProof=new)
    operator.deploy(STAGE, release)


def _refused(endpoint: str) -> None:
    """Check that the HTTP API's own address refuses requests that lack the edge's secret."""
    [api] = stack.physical(endpoint, STACK, "AWS::ApiGatewayV2::Api").values()
    for path in _PATHS:
        for headers in _GUESSES:
            address = f"{endpoint}/_aws/execute-api/{api}/$default{path}"
            answer = httpx2.get(address, headers=headers)
            if answer.status_code != 403:
                raise RehearsalFailed(f"{path} around the edge answers {answer.status_code}")
