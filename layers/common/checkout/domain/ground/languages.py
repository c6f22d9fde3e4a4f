"""The languages of the customers' pages.

To add a language, add a line to LANGUAGES, and the catalogue functions/pay/locale/TAG.po.
"""

from __future__ import annotations

import re
from typing import Final

# The name of each language, in that language.
LANGUAGES: Final[dict[str, str]] = {
    "en": "English",
    "es": "Español",
    "fr": "Français",
    "de": "Deutsch",
    "pt": "Português",
    "ar": "العربية",
    "hi": "हिन्दी",
    "sw": "Kiswahili",
}
TAG_MAX: Final = 35  # characters
_TAG: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")  # BCP 47, as far as pages need it


def language_of(tag: str) -> str | None:
    """Return a tag's language, such as "pt" for "pt-BR"; None if LANGUAGES does not contain it."""
    if len(tag) > TAG_MAX or not _TAG.fullmatch(tag):
        return None
    language = tag.partition("-")[0].lower()
    return language if language in LANGUAGES else None
