"""Read the catalogues: every text that a customer sees, by name, in each language.

They are gettext catalogues (`locale/LANGUAGE.po`), read when a language is first used. A missing
name is an error, so that no page mixes two languages.
"""

from __future__ import annotations

from functools import cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

FOLDER: Final = Path(__file__).parent / "locale"
# Around inserted text, which may have another direction (Unicode TR 9, first-strong isolate).
_ISOLATED: Final = "\u2068{}\u2069"


class Texts:
    """The texts of one language. The values of `{…}` are inserted, isolated in direction."""

    def __init__(self, messages: GNUTranslations) -> None:
        self._messages = messages
        self._plain: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """Return the text `name`, which has no values. Raise KeyError."""
        found = self._plain.get(name)
        if found is None:
            found = self._plain[name] = self.text(name)
        return found

    def __contains__(self, name: str) -> bool:
        return self._messages.gettext(name) != name

    def text(self, name: str, **values: str) -> str:
        """Return the text `name` with its values. Raise KeyError."""
        found = self._messages.gettext(name)
        if found == name:
            raise KeyError(name)
        return found.format(**_isolated(values))

    def counted(self, name: str, number: int, **values: str) -> str:
        """Return the text `name` in the plural form of `number`. Raise KeyError."""
        found = self._messages.ngettext(name, "", number)
        if found in (name, ""):
            raise KeyError(name)
        return found.format(number=number, **_isolated(values))


@cache
def texts(language: str) -> Texts:
    """Return the texts in one of `domain.languages.LANGUAGES`."""
    compiled = BytesIO()
    with (FOLDER / f"{language}.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return Texts(GNUTranslations(compiled))


def _isolated(values: dict[str, str]) -> dict[str, str]:
    return {name: _ISOLATED.format(value) for name, value in values.items()}
