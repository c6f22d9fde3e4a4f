"""A browser without scripts: pages, their forms, and what a person reads on them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

import requests
from bs4 import BeautifulSoup

ANSWERS_WITHIN = 60  # seconds; two processes share a busy machine


class Page:
    """One answer. `text` is what a person reads."""

    def __init__(self, answer: requests.Response) -> None:
        self.answer = answer
        self.url = str(answer.url)
        self.status = answer.status_code
        self.soup = BeautifulSoup(answer.text, "lxml")

    @property
    def text(self) -> str:
        for each in self.soup(["script", "style"]):
            each.decompose()
        return " ".join(self.soup.get_text(" ").split())

    def fields(self, form: Any) -> dict[str, str]:
        """The fields that a browser would send of this form, without its buttons."""
        sent = {}
        for each in form.select("input[name], select[name], textarea[name]"):
            kind = each.get("type", "text")
            if kind in ("submit", "button", "file") or each.has_attr("disabled"):
                continue
            if kind in ("checkbox", "radio") and not each.has_attr("checked"):
                continue
            if each.name == "select":
                chosen = each.select_one("option[selected]") or each.select_one("option")
                sent[each["name"]] = chosen.get("value", "") if chosen else ""
            elif each.name == "textarea":
                sent[each["name"]] = each.text.lstrip("\n")
            else:
                sent[each["name"]] = each.get("value", "on" if kind == "checkbox" else "")
        return sent


class Browser:
    """Keeps cookies, sends forms with their hidden fields, and follows redirects within `site`."""

    def __init__(self, site: str, ca_file: str | None = None) -> None:
        self.site = site
        self.http = requests.Session()
        self.http.trust_env = False
        if ca_file:
            self.http.verify = ca_file

    def get(self, path: str) -> Page:
        return self._followed("GET", urljoin(self.site, path))

    def send(self, page: Page, form: str, **fields: str) -> Page:
        """Send the form that the CSS selector finds, with these fields changed."""
        found = page.soup.select(form)
        assert found, f"no {form} on {page.url}: {page.text[:1500]}"
        data = {**page.fields(found[-1]), **fields}
        target = urljoin(page.url, found[-1].get("action") or "")
        method = found[-1].get("method", "get").upper()
        return self._followed(method, target, data=data, headers={"Referer": page.url})

    def _followed(self, method: str, url: str, **options: Any) -> Page:
        for _ in range(20):
            answer = self.http.request(
                method, url, allow_redirects=False, timeout=ANSWERS_WITHIN, **options
            )
            if not answer.is_redirect:
                return Page(answer)
            url = urljoin(url, answer.headers["Location"])
            method, options = "GET", {"headers": options.get("headers")}
            if not url.startswith(f"{self.site}/"):
                return Page(answer)
        raise AssertionError(f"redirected for ever: {url}")


def led_to(page: Page) -> str:
    """The address at another host that the last answer redirects to."""
    assert page.answer.is_redirect, f"{page.url} does not lead away: {page.text[:1500]}"
    return page.answer.headers["Location"]
