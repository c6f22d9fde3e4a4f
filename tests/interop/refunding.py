"""The owner of the local world's merchant: makes keys, and approves refunds in their own wallet."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import time
from typing import Any

from sandbox.place import Place
from tests.interop.packages import REPOSITORY
from tests.interop.shops import Customer
from tests.support.authenticator import Authenticator

_WAIT = "<h1>One moment</h1>"


class Owner(Customer):
    """An owner's browser, joined by the invitation that the operator's command prints.

    It also pays as Alice.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._home = f"{place.checkout}/dashboard"
        path, device = self._invited(place), Authenticator(place.checkout)
        token = {"form_token": self._token(self._http.get(path).text)}
        own = {"Origin": place.checkout}
        options = self._http.post(f"{path}/options", data=token, headers=own).json()
        joined = self._http.post(
            path,
            data={**token, "credential": device.create(options)},
            headers=own,
            follow_redirects=True,
        )
        assert joined.status_code == 200, joined.text

    @staticmethod
    def _invited(place: Place) -> str:
        words = (
            f"checkout.cli invite --name Olga --role owner --wallet-address {place.merchant_wallet}"
        )
        done = subprocess.run(
            ["sh", "-c", f". '{place.environment_file}' && exec '{sys.executable}' -m {words}"],
            cwd=REPOSITORY / "layers/common",
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
            check=False,
        )
        link = re.search(r"^link +(\S+)$", done.stdout, re.M)
        assert link is not None, done.stdout + done.stderr
        return link[1]

    @staticmethod
    def _token(page: str) -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', page)
        assert found is not None, page
        return found[1]

    def new_key(self, choice: str) -> str:
        """Return a new API key that may do what this choice of the dashboard's form says."""
        page = f"{self._home}/keys"
        made = self._post_form(page, page, name="Shop", ends="", scopes=choice)
        found = re.search(r"sk_\w{20,}", made.text)
        assert found is not None, made.text
        return found[0]

    def approve_refund(self, refund_id: str) -> dict[str, Any]:
        """Approve a refund in the merchant's own wallet; return it when it has ended."""
        page = f"{self._home}/refunds/{refund_id}"
        shown = self._post_form(page, f"{page}/prepare").text
        link = re.search(r'<a class="button" href="([^"]+)" rel="noreferrer">', shown)
        assert link is not None, shown
        callback = self._approve(html.unescape(link[1]))
        deadline = time.monotonic() + 30
        while _WAIT in self._http.get(callback).text and time.monotonic() < deadline:
            time.sleep(1)
        return self._wait_for_refund(refund_id)
