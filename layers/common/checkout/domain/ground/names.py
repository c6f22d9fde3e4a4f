"""Decide which typed texts a page can show, and which of these texts can be names.

Python's `isprintable` is not enough. It accepts invisible fillers and blanks, so that a name could
be empty or look like another name. It also refuses the joiners that are needed to write Persian,
Hindi, Sinhala and many emoji. Sources: Default_Ignorable_Code_Point of Unicode 16,
DerivedCoreProperties.txt; RFC 5892, appendix A, and UAX 31, section 2.3, for joiners; UTS 51 and
UTS 37 for variation selectors.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from typing import Final


def _points(text: str) -> tuple[int, ...]:
    """Return the first code point of each range and the first after the range, in ascending order.

    `text` lists code points and ranges in hexadecimal.
    """
    pairs = (each.partition("-") for each in text.split())
    ranges = sorted((int(low, 16), int(high or low, 16) + 1) for low, _, high in pairs)
    return tuple(end for each in ranges for end in each)


# First Default_Ignorable_Code_Point, then letters, signs and marks that show nothing: the blanks of
# Braille, hieroglyphs, Khitan and music, and the object replacement character.
_HIDDEN: Final = _points(
    "AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF "
    "FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF "
    "2800 13441-13442 16FE4 1D159 FFFC"
)
# Letters of cursive scripts (Arabic, Syriac, N'Ko, Mandaic, Mongolian, Adlam). A joiner keeps two
# such letters apart or together.
_CURSIVE: Final = _points(
    "620-65F 66E-6D3 6D5 6FA-6FF 710-77F 7CA-7EA 840-85B 860-86A 8A0-8C9 1820-18AA 1E900-1E943"
)
_MONGOLIAN: Final = _points("1820-18AA")
_IDEOGRAPHS: Final = _points("3400-4DBF 4E00-9FFF F900-FAFF 20000-3FFFF")
_EMOJI: Final = _points(
    "A9 AE 203C 2049 2122 2139 2194-21AA 231A-23FF 24C2 25AA-25FE 2600-27BF 2934-2935 2B05-2B55 "
    "3030 303D 3297 3299 1F000-1FAFF"
)
_OF_EMOJI: Final = frozenset("\ufe0e\ufe0f")
_OF_IDEOGRAPHS: Final = _points("FE00-FE02 E0100-E01EF")
_OF_MONGOLIAN: Final = _points("180B-180D 180F")
_KEY_CAP: Final = "\u20e3"
_VIRAMA: Final = 9  # the combining class of a virama, which joins two letters of an Indic script
JOINERS: Final = frozenset("\u200c\u200d")
# Finds texts that mail programs turn into links. The pattern is matched against the NFKC form of a
# text, in which every sign is written in only one way.
_ADDRESS: Final = re.compile(r"@|://|\bwww\.|[a-z0-9]\.[a-z]{2,}[/?#]", re.IGNORECASE)


def shown(text: str) -> bool:
    """Return whether a page can show `text` as it is: one line without hidden characters."""
    if text.isascii():
        return text.isprintable()
    return all(_fits(text, at) for at in range(len(text)))


def is_name(text: str, longest: int) -> bool:
    """Return whether `text` can be a name: at most `longest` characters, which can all be shown.

    At least one character must be a letter or a digit.
    """
    return len(text) <= longest and shown(text) and any(map(str.isalnum, text))


def is_plain_name(text: str, longest: int) -> bool:
    """Return whether `text` can be the name of a shop or a person.

    Such a name contains no address, because strangers read it in e-mails and in their wallets.
    """
    return is_name(text, longest) and not _ADDRESS.search(unicodedata.normalize("NFKC", text))


def _fits(text: str, at: int) -> bool:
    """Return whether the character at `at` is visible, or hidden but needed by a neighbor."""
    each = text[at]
    if not _among(each, _HIDDEN):
        return each.isprintable()
    before, after = text[at - 1 : at], text[at + 1 : at + 2]  # each is "" at an end
    if each in JOINERS:
        return _joins(before, each, after)
    if each in _OF_EMOJI:
        key = before != "" and before in "0123456789#*" and after == _KEY_CAP
        return key or _among(before, _EMOJI)
    return (_among(each, _OF_IDEOGRAPHS) and _among(before, _IDEOGRAPHS)) or (
        _among(each, _OF_MONGOLIAN) and _among(before, _MONGOLIAN)
    )


def _joins(before: str, joiner: str, after: str) -> bool:
    """Return whether a joiner (a hidden character) changes how its neighbors are displayed."""
    cursive = _among(before, _CURSIVE) and _among(after, _CURSIVE)
    if cursive or _is_virama(before):
        return True
    emoji = (_among(before, _EMOJI) or before in _OF_EMOJI) and _among(after, _EMOJI)
    return joiner == "\u200d" and (emoji or _is_virama(after))


def _is_virama(character: str) -> bool:
    return character != "" and unicodedata.combining(character) == _VIRAMA


def _among(character: str, points: tuple[int, ...]) -> bool:
    return character != "" and bisect_right(points, ord(character)) % 2 == 1
