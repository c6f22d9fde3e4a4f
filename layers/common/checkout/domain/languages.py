"""The languages of the customer's pages, and the language of a tag.

A tag is letters and digits in parts of at most 8, at most 35 characters (BCP 47 as far as pages
need it); anything else is refused.
"""

from __future__ import annotations

import re
from typing import Final

LANGUAGES: Final = ("en", "es", "fr", "de", "pt", "ar", "hi", "sw")
TAG_MAX: Final = 35  # characters
_TAG: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")


def language_of(tag: str) -> str | None:
    """Return the language of LANGUAGES that `tag` is, or is a variety of: "pt-BR" is "pt"."""
    if len(tag) > TAG_MAX or not _TAG.fullmatch(tag):
        return None
    language = tag.partition("-")[0].lower()
    return language if language in LANGUAGES else None
