"""Which texts of people can be shown, and which are names: in every script, and nothing hidden."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.ground.names import is_name, is_plain_name, shown
from tests.attacks.texts import LEADING
from tests.support.sources import REPOSITORY, files

# By the script: names as people write them, with the joiners and selectors that belong there.
NAMES: Final = {
    "Latin": "Zoë Müller-O’Brien Jr.",
    "Vietnamese, in pieces": "Nguye\u0302\u0303n Phu\u0301c",
    "Greek": "Ελένη Παπαδοπούλου",
    "Cyrillic": "Анна Ђорђевић",
    "Hebrew": "שָׂרָה כֹּהֵן",
    "Arabic": "عبد الرحمٰن",
    "Persian": "علی‌رضا خوش‌نویس",
    "Devanagari": "क्‍षितिज शर्मा",
    "Devanagari, apart": "श्‌री",
    "Bengali": "র‍্যাচেল",
    "Sinhala": "ශ්‍රී ලාල්",
    "Malayalam": "രാജന്‍",
    "Tamil": "கார்த்திக்",
    "Thai": "สมหญิง",
    "Khmer": "សុខា",
    "Han": "山田太郎",
    "Han, of a name": "葛\U000e0100城",
    "Kana": "ヤマダ たろう",
    "Hangul": "김철수",
    "Mongolian": "ᠪᠠ\u180bᠲᠤ",
    "Ethiopic": "አበበ በቂላ",
    "digits": "4711",
    "emoji": "👩‍👩‍👧 Family",
    "emoji of a selector": "Love ❤️‍🔥",
    "key cap": "Shop 1️⃣",
    "emoji of a skin": "👋🏽 Hi",
}
# Default_Ignorable_Code_Point of Unicode 16, and some that look blank: a second time, by hand.
IGNORED: Final = (
    *range(0x180B, 0x1810),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xFFF0, 0xFFF9),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
    *(0x2800, 0xFFFC, 0x1D159),
)
ignored = st.text(st.sampled_from(list(map(chr, IGNORED))), min_size=1)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_of_people_pass_in_every_script(name: str) -> None:
    assert shown(name)
    assert is_plain_name(name, 100)
    assert not is_name(name, len(name) - 1)


@given(ignored, st.sampled_from(["", " ", "  "]))
def test_what_is_ignored_or_blank_is_no_name(text: str, blank: str) -> None:
    assert not shown(blank + text)
    assert not is_name(text + blank, 100)


@given(ignored, st.sampled_from(["Bank", "Ünal", "Банк", "중앙"]))
def test_nothing_hides_in_a_name(text: str, name: str) -> None:
    for written in (text + name, name + text, name[:2] + text + name[2:]):
        assert not shown(written)


@pytest.mark.parametrize(
    "text",
    [
        *("a\u200db", "\u200cالف", "الف \u200c", "❤\u200dx", "क\u200dख"),
        *("x\ufe0f", "1\ufe0f", "a\u20e3\ufe0f", "क\u180b", "a\U000e0100"),
    ],
)
def test_a_joiner_or_selector_that_shows_nothing_is_hidden(text: str) -> None:
    assert not shown(text)


@pytest.mark.parametrize("text", ["…", "👍", "—", "", "   ", "!?"])
def test_a_name_has_a_letter_or_a_digit_and_a_text_needs_none(text: str) -> None:
    assert shown(text)
    assert not is_name(text, 100)


@given(st.text())
def test_what_is_shown_is_one_line_of_what_python_can_print(text: str) -> None:
    if shown(text):
        assert text.replace("\u200c", "").replace("\u200d", "").isprintable()


@pytest.mark.parametrize("name", LEADING.values(), ids=LEADING)
def test_a_name_with_an_address_in_it_is_no_plain_name(name: str) -> None:
    assert is_name(name, 100)
    assert not is_plain_name(name, 100)


@pytest.mark.parametrize("name", ["Booking.com", "St. Pauli", "A/B Shop", "Tea: green", "Dr. No?"])
def test_a_name_with_a_dot_or_a_stroke_is_one(name: str) -> None:
    assert is_plain_name(name, 100)


# What `isprintable` still judges, and why that is right there.
KEPT: Final = {
    "functions/pay/emails.py": 1,  # makes one line of any text; joiners are kept
    "layers/common/checkout/domain/ground/grammar.py": 1,  # a URL, in which no joiner belongs
    "layers/common/checkout/domain/ground/names.py": 2,
    "packages/open-payments/src/open_payments/interaction.py": 1,  # ASCII
    # It chooses the sentence about a mistake.
    "layers/common/checkout/domain/ground/typed_address.py": 1,
}


def test_no_other_text_is_judged_by_python_alone() -> None:
    found = {
        str(path.relative_to(REPOSITORY)): count
        for path in files(
            ".py", "layers/common/checkout", "packages/open-payments/src", "functions"
        )
        if (count := path.read_text("utf-8").count(".isprintable"))
    }
    assert found == KEPT
