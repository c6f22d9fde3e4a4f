"""Write both documents, and the reference made from them: `python -m docs.openapi`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from docs.openapi import native, page, stripe

DOCS: Final = Path(__file__).parents[1]
REFERENCE: Final = DOCS.parent / "functions/api/reference"


def _write(name: str, document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    (DOCS / name).write_text(text, "utf-8")


if __name__ == "__main__":
    documents = {"openapi.json": native.document(), "openapi-v1.json": stripe.document()}
    for name, document in documents.items():
        _write(name, document)
    for name, text in page.files(documents.items()).items():
        (REFERENCE / name).write_text(text, "utf-8")
