from __future__ import annotations

import re
from pathlib import Path

import pytest
from babel import Locale

from checkout.domain.ground.languages import LANGUAGES, language_of
from tests.support.sources import files


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_is_its_own_and_so_are_its_varieties(language: str) -> None:
    for tag in (language, language.upper(), f"{language}-XX", f"{language}-Latn-419-x-shop"):
        assert language_of(tag) == language


@pytest.mark.parametrize(
    "tag",
    ["", "xx", "eng", "english", "en_GB", "en-", "-en", "e", "*", "en\n", "ｅn", "en-" + "a" * 40],
)
def test_what_is_no_tag_or_no_language_of_ours_leads_nowhere(tag: str) -> None:
    assert language_of(tag) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_is_named_as_its_speakers_name_it(language: str) -> None:
    named = Locale.parse(language).get_display_name(language)
    assert named is not None
    assert LANGUAGES[language].casefold() == named.casefold()


def test_no_page_says_how_many_languages_there_are() -> None:
    root = Path(__file__).parents[3]
    count = re.compile(
        r"\b(?:\d+|[a-z]+teen|six|seven|eight|nine|ten|eleven|twelve) languages", re.I
    )
    pages = [root / "README.md", *files(".md", "docs")]
    assert [page.name for page in pages if count.search(page.read_text("utf-8"))] == []
