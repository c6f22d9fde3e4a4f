"""`make screenshots`: a picture of every state on a phone and on a desktop, light, dark and in
Arabic, and the name of the folder with them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser.gallery import STATES, show
from tests.browser.launch import chromium, launched
from tests.browser.served import new_context, served

FOLDER = Path(__file__).parent.parent.parent / "screenshots"


def main(chosen: list[str]) -> None:
    found = chromium()
    if found is None:
        sys.exit("Chromium is not installed.")
    FOLDER.mkdir(exist_ok=True)
    with served() as pages, launched(found) as browser:
        for device in ("phone", "desktop"):
            for scheme, tag in (("light", "en"), ("dark", "en"), ("light", "ar")):
                look = tag if tag != "en" else scheme
                context = new_context(browser, scheme=scheme, wide=device == "desktop", tag=tag)
                page = context.new_page()
                for name in chosen or STATES:
                    show(name, page, pages)
                    page.screenshot(path=FOLDER / f"{name}-{device}-{look}.png", full_page=True)
                context.close()
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}")


if __name__ == "__main__":
    main(sys.argv[1:])
