"""Judge what a page shows: accessibility, what is cut off, and the errors of its script."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page


def violations(page: Page, axe: str) -> list[str]:
    """Return axe-core's findings, with best practices and folded parts included."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


class Judge:
    """A page of one width (pixels) and color scheme, and what is wrong with what it showed."""

    def __init__(self, browser: Browser, axe: str, width: int, scheme: Any) -> None:
        viewport: Any = {"width": width, "height": 800}
        self.page = browser.new_context(viewport=viewport, color_scheme=scheme).new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self._faults.append(str(error)))
        self._axe, self._width = axe, width
        self._faults: list[str] = []

    def __call__(self, name: str) -> None:
        """Judge what is shown now, with everything unfolded."""
        page = self.page
        for summary in page.locator("summary:visible").all():
            summary.click()
        self._faults += [f"{name}: {found}" for found in violations(page, self._axe)]
        if page.evaluate("document.documentElement.scrollWidth") > self._width:
            self._faults.append(f"{name} is too wide")
        for each in page.locator(".list").all():
            if each.evaluate("each => each.scrollWidth > each.clientWidth"):
                self._faults.append(f"{name}: the list is cut")

    def done(self) -> None:
        """Close the page and require that nothing was wrong."""
        self.page.context.close()
        assert not self._faults, "\n".join(self._faults)

    def _heard(self, said: ConsoleMessage) -> None:
        """The browser tells of every answer that is an error page; they are looked at too."""
        if said.type == "error" and "status of 40" not in said.text:
            self._faults.append(said.text)
