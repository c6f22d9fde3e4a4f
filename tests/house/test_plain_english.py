"""Check each sentence that people read for forms that need a second reading.

Each pattern has a sentence that it must find, and one that it must leave alone.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.house.prose import Sentence, sentences

ASIDE = re.compile(r"`[^`]*`|“[^”]*”")  # code and quoted words

BANNED = {
    "a relative clause at the beginning: say who or what it is": (
        r"^(?:[-*] |\d+\. )?(?:What(?! to)|Whatever|Who|Whoever|Whose|Where|Wherever)\b.{8}.*[.:]$",
        "Who opens it creates a passkey.",
        "The person who opens it creates a passkey.",
    ),
    "a relative clause as the subject": (
        r"[;:] (?:and |but )?(?:who|whoever)\b (?!.*\?)"
        r"|\b(?:that|because|so|but|from|than) who(?:ever)?\b",
        "It is refused: who sends twice waits.",
        "It is refused: a client who sends twice waits.",
    ),
    "'what was …' as the subject": (
        r"(?:^|[;:] )what (?:is|was|are|were|has|had|comes)\b"
        r"(?:(?!\b(?:what|who|how|that|which|where|when|and|or|it|they|there)\b)[^.,;:?])*?"
        r" (?:is|are|was|were|goes|stays|counts)\b",
        "It can be repeated: what is erased already is left alone.",
        "It can be repeated: erased records are left alone.",
    ),
    "'so long' for 'this long'": (
        r"\bso (?:long|many|much|often|few|little|old)\b(?!(?:\W+\w+){0,12}?\W+(?:that|as)\b)",
        "The secret is valid for so long.",
        "It took so long that the wallet gave up.",
    ),
    "'has not the' for 'lacks the'": (
        r"\b(?:has|have|had) not (?:the|a|an|any|its|their|this|that|these|those|as)\b",
        "The key has not the scope.",
        "The key has not been used.",
    ),
    "'is the most' for 'the maximum is'": (
        r"\b(?:is|are|was|were) the (?:least|most)(?=[.,;:)]|$| and | that )|as often as it may",
        "There are eight, which is the most: delete one.",
        "This is the most frequent error.",
    ),
    "'Those of …' without its noun": (
        r"^(?:That|Those) of\b",
        "Those of a provider that hangs wait.",
        "Sessions of a provider that hangs wait.",
    ),
    "a word that is out of use": (
        r"\b(?:heeds?|mends?|mended|lest|whence|thereof|wherein|naught|hitherto)\b",
        "It neither closes it nor heeds its expiry.",
        "It ignores both.",
    ),
}


@cache
def every_sentence() -> tuple[Sentence, ...]:
    return tuple(sentences())


@pytest.mark.parametrize("reason", BANNED)
def test_the_pattern_finds_its_example_and_leaves_the_other(reason: str) -> None:
    pattern, bad, good = BANNED[reason]
    assert re.search(pattern, bad), bad
    assert not re.search(pattern, good), good


@pytest.mark.parametrize("reason", BANNED)
def test_every_sentence_is_plain(reason: str) -> None:
    pattern = re.compile(BANNED[reason][0])
    found = [
        f"{each.place} {each.text}"
        for each in every_sentence()
        if not each.place.startswith("tests/house/test_plain_english.py")
        and pattern.search(ASIDE.sub("`x`", each.text))
    ]
    assert found == []
