"""The local world in a process of its own: checkout, wallets, its merchant and its customers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import requests
from browser import Browser, Page

from tests.support.authenticator import Authenticator

REPOSITORY = Path(__file__).resolve().parents[3]
PYTHON = REPOSITORY / ".venv/bin/python"
T = TypeVar("T")
PATIENCE = 60.0  # seconds
OFFSETS = (0, 10, 11, 12, 100, 101, 102, 201, 202, 566)


class World:
    """`make dev` with ports and a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.base = _free_base()
        self.url = f"http://localhost:{self.base}"
        self.wallets = f"http://localhost:{self.base + 100}"
        self.customers = f"https://localhost:{self.base + 101}"
        self.merchant_wallet = f"https://localhost:{self.base + 201}/shop"
        self.folder = folder / str(self.base)
        self.environment = {
            **{name: value for name, value in os.environ.items() if "DJANGO" not in name},
            "SANDBOX_STATE": str(folder),
            "SANDBOX_PORT": str(self.base),
            "SANDBOX_WAIT": "1",
            "PYTHONPATH": "layers/common:functions",
        }
        self.process = subprocess.Popen(
            [str(PYTHON), "-m", "sandbox", "dev"],
            cwd=REPOSITORY,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ready(self) -> None:
        """Wait until it serves, and make the API key that the plugin's README asks for."""
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.startswith("API key"):
                break
        else:
            raise AssertionError("".join(said))
        self.ca_file = str(self.folder / "ca.pem")
        self.owner = self._joined()
        self.api_key = self.new_key("refund")

    def end(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)

    # --- the merchant ---

    def _joined(self) -> Browser:
        """An owner's browser, by the invitation that the operator's command prints."""
        command = f"invite --name Olga --role owner --wallet-address {self.merchant_wallet}"
        settings = self.folder / "env"
        done = subprocess.run(
            f". '{settings}' && exec '{PYTHON}' -m checkout.cli {command}",
            shell=True,
            cwd=REPOSITORY / "layers/common",
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
            check=False,
        )
        link = re.search(r"^link +(\S+)$", done.stdout, re.M)
        assert link is not None, done.stderr
        owner, device = Browser(self.url), Authenticator(self.url)
        page = owner.get(link[1])
        token = {"form_token": _token(page)}
        own = {"Origin": self.url}
        options = owner.http.post(f"{link[1]}/options", data=token, headers=own).json()
        joined = owner.http.post(
            link[1], data={**token, "credential": device.create(options)}, headers=own
        )
        assert joined.ok, joined.text
        return owner

    def new_key(self, choice: str) -> str:
        """A new API key that may do what this choice of the dashboard's form says."""
        page = self.owner.get("/dashboard/keys")
        fields = {"name": "pretix", "ends": "", "scopes": choice}
        made = self.dashboard_form("/dashboard/keys", page, fields)
        key = re.search(r"sk_\w{20,}", made.text)
        assert key is not None, made.text
        return key[0]

    def dashboard_form(self, path: str, page: Page, fields: dict[str, Any]) -> Page:
        answer = self.owner.http.post(
            f"{self.url}{path}",
            data={"form_token": _token(page), **fields},
            headers={"Origin": self.url},
            timeout=PATIENCE,
        )
        return Page(answer)

    def approve_refund(self, identity: str) -> None:
        """Approve a refund as the owner: on its page, then in the merchant's own wallet."""
        path = f"/dashboard/refunds/{identity}"
        shown = self.dashboard_form(f"{path}/prepare", self.owner.get(path), {})
        link = shown.soup.find("a", string=re.compile("Approve in your wallet"))
        assert link is not None, shown.text
        page = self.owner.get(self.approved(link["href"]))
        while again := page.soup.select_one("a#again"):  # the wallet asks for a pause
            time.sleep(1)
            page = self.owner.get(again["href"])

    def cancel_refund(self, identity: str) -> None:
        path = f"/dashboard/refunds/{identity}"
        self.dashboard_form(f"{path}/cancel", self.owner.get(path), {})

    def refund(self, session: str, amount: int) -> str:
        """Request a refund in the dashboard, without the shop."""
        path = f"/dashboard/transactions/{session}"
        amount_typed = str(Decimal(amount) / 100)
        page = self.dashboard_form(
            f"{path}/refund", self.owner.get(path), {"amount": amount_typed, "mode": "at_cost"}
        )
        found = re.search(r"re_\w+", page.answer.text)
        assert found is not None, page.text
        return found[0]

    def api(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = requests.request(
            method,
            f"{self.url}{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.api_key}"},
            timeout=PATIENCE,
        )
        found: dict[str, Any] = answer.json()
        assert answer.ok, found
        return found

    def session(self, identity: str) -> dict[str, Any]:
        return self.api("GET", f"/api/checkout/sessions/{identity}")

    def wait_for(self, identity: str, status: str) -> None:
        until(
            lambda: self.session(identity)["status"] == status,
            lambda: f"{status}, not {self.session(identity)['status']}",
        )

    def received(self, *sessions: str) -> Decimal:
        """The sum that these sessions received, by the public books of the merchant's wallet."""
        total = Decimal(0)
        for each in sessions:
            if incoming := self.session(each)["incoming_payment"]:
                shown = requests.get(incoming, verify=self.ca_file, timeout=PATIENCE).json()
                amount = shown["receivedAmount"]
                total += Decimal(amount["value"]).scaleb(-amount["assetScale"])
        return total

    def balance(self, wallet: str | None = None) -> Decimal:
        """The balance of a wallet, as its own pages show it."""
        address = wallet or self.merchant_wallet
        answer = requests.get(f"{self.wallets}/account", params={"address": address}, timeout=60)
        shown = Page(answer).soup.select_one("#balance")
        assert shown is not None, answer.text
        return Decimal(shown.text.split()[0].replace(",", ""))

    # --- customers ---

    def prepare(self, page: str, wallet: str = "alice") -> tuple[requests.Session, str]:
        """Give the payment page a wallet; return the browser, and the page of the approval."""
        browser = requests.Session()
        browser.trust_env = False
        assert browser.get(page, timeout=PATIENCE).ok
        address = {"wallet_address": f"{self.customers}/{wallet}"}
        answer = browser.post(f"{page}/wallet", json=address, timeout=PATIENCE)
        assert answer.ok, answer.text
        url: str = answer.json()["interact_url"]
        return browser, url

    def pay(self, page: str, wallet: str = "alice") -> None:
        """Pay on the hosted page and come back to it; the customer then closes the browser."""
        browser, approval = self.prepare(page, wallet)
        self.come_back(browser, self.approved(approval))

    def come_back(self, browser: requests.Session, callback: str) -> None:
        """Open the address to which the wallet sends the customer, until it is done with."""
        while True:
            answer = browser.get(callback, allow_redirects=False, timeout=PATIENCE)
            if "refresh" not in answer.headers:
                return
            time.sleep(1)

    def approved(self, interact_url: str) -> str:
        """Press "Approve" at the wallet; return the address to which it sends its user back."""
        wallet = requests.Session()
        wallet.verify = self.ca_file
        consent = wallet.get(interact_url, timeout=PATIENCE)
        form = Page(consent).soup.select_one("form[method=post]")
        assert form is not None, consent.text
        answer = wallet.post(
            requests.compat.urljoin(consent.url, form["action"]),
            data={"choice": "approve"},
            allow_redirects=False,
            timeout=PATIENCE,
        )
        while answer.is_redirect:
            target = requests.compat.urljoin(answer.url, answer.headers["Location"])
            if target.startswith(f"{self.url}/"):
                return target
            answer = wallet.get(target, allow_redirects=False, timeout=PATIENCE)
        raise AssertionError(f"the wallet does not send its user back: {answer.text[:500]}")


def until(happened: Callable[[], T], what: Callable[[], str], patience: float = PATIENCE) -> T:
    """Wait until `happened()` is true, and return it; `what()` says what did not happen."""
    end = time.monotonic() + patience
    while True:
        if found := happened():
            return found
        assert time.monotonic() < end, f"not within {patience:.0f} s: {what()}"
        time.sleep(0.2)


def _token(page: Page) -> str:
    found = page.soup.select_one("input[name=form_token]")
    assert found is not None, page.text
    return str(found["value"])


def _free_base() -> int:
    """The first of a local world's ports, of which all are free."""
    for number in range(20):
        base = 14_000 + 700 * ((os.getpid() + number) % 20)
        if all(_free(base + each) for each in OFFSETS):
            return base
    raise AssertionError("no free ports")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
