from __future__ import annotations

import pytest

from checkout.domain.languages import LANGUAGES, language_of


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
