"""Judge what a page shows: accessibility, what is cut off, and the errors of its script."""

from __future__ import annotations

from typing import Any, Final, Literal

from playwright.sync_api import Browser, ConsoleMessage, Page

# The last ones are those of a new page.
WIDTHS: Final = (320, 375, 1280)  # pixels
SCHEMES: Final[tuple[Literal["dark", "light"], ...]] = ("dark", "light")


def violations(page: Page, axe: str) -> list[str]:
    """Return axe-core's findings, with best practices and folded parts included."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def of_dialogs(page: Page, axe: str) -> list[str]:
    """Return what is wrong with the page's dialogs, each opened in its turn, if none is open."""
    found: list[str] = []
    if page.locator("dialog[open]").count():
        return found
    for dialog in page.locator("dialog").all():
        dialog.evaluate("one => one.showModal()")
        found += violations(page, axe)
        if dialog.evaluate("one => one.scrollWidth > one.clientWidth"):
            found.append("a dialog is cut")
        dialog.evaluate("one => one.close()")
    return found


def faults(page: Page, axe: str, widths: tuple[int, ...] = WIDTHS) -> list[str]:
    """Return what is wrong with what the page shows now, unfolded, at each width and scheme."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            found += [f"{width}, {scheme}: {one}" for one in violations(page, axe)]
            if width == widths[0]:  # the narrowest
                found += [f"{width}, {scheme}: {one}" for one in of_dialogs(page, axe)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{width}: the page is too wide")
        for each in page.locator(".list").all():
            if each.evaluate("each => each.scrollWidth > each.clientWidth"):
                found.append(f"{width}: the list is cut")
    return found


class Judge:
    """A page of a width in pixels, and what was wrong with what it showed at `widths`."""

    def __init__(
        self,
        browser: Browser,
        axe: str,
        width: int = WIDTHS[-1],
        *,
        widths: tuple[int, ...] = WIDTHS,
    ) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self._faults.append(str(error)))
        self._axe = axe
        self._widths = widths
        self._faults: list[str] = []

    def __call__(self, name: str) -> None:
        """Judge what is shown now."""
        self._faults += [f"{name}, {fault}" for fault in faults(self.page, self._axe, self._widths)]

    def done(self) -> None:
        """Close the page and require that nothing was wrong."""
        self.page.context.close()
        assert not self._faults, "\n".join(self._faults)

    def _heard(self, said: ConsoleMessage) -> None:
        """The browser tells of every answer that is an error page; they are looked at too."""
        if said.type == "error" and "status of 40" not in said.text:
            self._faults.append(said.text)
