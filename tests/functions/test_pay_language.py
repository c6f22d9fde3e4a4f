"""No language lacks a sentence, and each writes numbers and dates its own way."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

import pay
from checkout.domain.ground.errors import CheckoutError, Conflict
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.payment.in_flight import Problem
from checkout.web import STATUS
from open_payments.models import Amount
from pay.language import FOLDER, Reader, reader, texts
from tests.support.hosted_pages import Customer

HERE = Path(pay.__file__).parent


def catalogue(language: str) -> Catalog:
    with (FOLDER / f"{language}.po").open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


def messages(language: str) -> dict[str, Message]:
    return {one.id if isinstance(one.id, str) else one.id[0]: one for one in catalogue(language)}


def forms(message: Message) -> tuple[str, ...]:
    said = message.string
    assert said is not None
    return (said,) if isinstance(said, str) else tuple(said)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


ENGLISH = messages("en")
NAMES = sorted(set(ENGLISH) - {""})


def test_there_is_a_catalogue_for_each_language_and_for_no_other() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_lacks_a_sentence_a_placeholder_or_a_plural_form(language: str) -> None:
    found = messages(language)
    assert sorted(set(found) - {""}) == NAMES
    plurals = catalogue(language).num_plurals
    for name in NAMES:
        mine, english = found[name], ENGLISH[name]
        assert mine.pluralizable == english.pluralizable, name
        assert len(forms(mine)) == (plurals if mine.pluralizable else 1), name
        for form in forms(mine):
            assert form.strip() == form != "", name
            assert placeholders(form) == placeholders(forms(english)[0]), name


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each != "en"])
def test_hardly_a_sentence_is_still_the_english_one(language: str) -> None:
    found = messages(language)
    same = {name for name in NAMES if forms(found[name]) == forms(ENGLISH[name])}
    address = {"address.province", "address.region"}
    known = {"order.quantity", "order.total", "time", "step.1", "buy.email", "buy.name"}
    assert same <= known | address


def test_the_english_pages_have_one_word_for_one_thing() -> None:
    said = " ".join(form for name in NAMES for form in forms(ENGLISH[name]))
    assert not re.findall(r"(?i)\bemail", said), "e-mail, as everywhere"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_plural_rules_are_those_of_the_language(language: str) -> None:
    found = texts(language)
    seen = {found.counted("completed.countdown", number) for number in range(200)}
    assert len(seen) == 200
    for number in range(3, 200):
        assert str(number) in found.counted("completed.countdown", number)


def test_each_sentence_is_used_and_each_used_sentence_exists() -> None:
    templates = "".join(path.read_text() for path in (HERE / "templates").glob("*.html"))
    code = "".join(path.read_text() for path in HERE.glob("*.py"))
    used = set(re.findall(r'\bt(?:\[|\.text\(|\.counted\()"([a-z_.]+)"', templates))
    used -= {"fault.", "confirming.", "buy.", "till."}
    used |= set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)+)"', templates + code)) & set(NAMES)
    used |= {"not_charged", "no_money"}
    computed = re.compile(
        r"(fault|error|confirming|buy|till|notice|address|ask)\..+|step\.[1-4]|price\.(rose|fell|same)"
    )
    assert used <= set(NAMES)
    assert {name for name in set(NAMES) - used if not computed.fullmatch(name)} == set()


@pytest.mark.parametrize("problem", Problem)
def test_each_problem_has_its_sentence_and_what_to_do(problem: Problem) -> None:
    assert {f"fault.{problem}", f"fault.{problem}.next"} <= set(NAMES)


# A conflict is of keys, settings and events, which no customer changes.
@pytest.mark.parametrize(
    "error",
    [each for each in STATUS if STATUS[each][0] in (409, 424, 429) and each is not Conflict],
)
def test_each_refusal_of_a_wallet_has_its_sentence_and_what_to_do(
    error: type[CheckoutError],
) -> None:
    assert {f"fault.{error.code}", f"fault.{error.code}.next"} <= set(NAMES)


def test_a_sentence_that_is_missing_is_an_error_and_not_its_name() -> None:
    with pytest.raises(KeyError):
        texts("en").text("nothing")
    with pytest.raises(KeyError):
        texts("en").counted("nothing", 1)


@pytest.mark.parametrize(
    ("wished", "accepted", "default", "tag"),
    [
        (None, "", None, "en"),
        ("fr", "de", "es", "fr"),
        ("zz", "de", "es", "de"),
        (None, "de-CH,de;q=0.9,en;q=0.8", "es", "de-CH"),
        (None, "ja, zh;q=0.9, pt-BR;q=0.2", None, "pt-BR"),
        (None, "en;q=0.5, sw;q=0.7", None, "sw"),
        (None, "en;q=0, hi;q=0.001", None, "hi"),
        (None, "ja", "AR-eg", "ar-EG"),
        (None, "*;q=0.5", "es", "es"),
        (None, "de-XX-x-made-up", None, "de"),
        (None, ";;q=,,\x00 en;q=2;fr;q=x,es ; q=0.3", None, "es"),
        (None, "x" * 10_000, None, "en"),
        ("e" * 500, "/../../etc", "<b>", "en"),
    ],
)
def test_the_language_is_the_merchants_wish_else_the_browsers_else_the_shops(
    wished: str | None, accepted: str, default: str | None, tag: str
) -> None:
    assert reader(wished=wished, accepted=accepted, default=default).tag == tag


def reads(tag: str) -> Reader:
    return reader(wished=tag, accepted="", default=None)


def plain(text: str) -> str:
    """Return the text with blanks in place of those that do not break."""
    return text.replace("\xa0", " ")


@pytest.mark.parametrize(
    ("tag", "amount", "price"),
    [
        ("en", "1,234,567.50 EUR", "€1,234,567.50"),
        ("de", "1.234.567,50 EUR", "1.234.567,50 €"),
        ("de-CH", "1’234’567.50 EUR", "1’234’567.50 EUR"),
        ("fr", "1\u202f234\u202f567,50 EUR", "1\u202f234\u202f567,50 €"),
        ("es", "1.234.567,50 EUR", "1.234.567,50 €"),
        ("pt-BR", "1.234.567,50 EUR", "€ 1.234.567,50"),
        ("hi", "12,34,567.50 EUR", "€12,34,567.50"),
        ("ar", "1,234,567.50 EUR", "\u200f1,234,567.50 €\u200e"),
        ("sw", "1,234,567.50 EUR", "€ 1,234,567.50"),
    ],
)
def test_amounts_and_prices_are_written_as_the_reader_writes_them(
    tag: str, amount: str, price: str
) -> None:
    money = Amount(123_456_750, "EUR", 2)
    assert plain(reads(tag).amount(money)) == amount
    assert plain(reads(tag).price(money)) == price


LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    ("value", "code", "scale", "exact", "price"),
    [
        (1853, "EUR", 2, "18.53 EUR", "€18.53"),
        (5, "USD", 2, "0.05 USD", "$0.05"),
        (0, "USD", 2, "0.00 USD", "$0.00"),
        (123_456_789, "USD", 2, "1,234,567.89 USD", "$1,234,567.89"),
        (1_143_950_091_745, "EUR", 9, "1,143.950091745 EUR", "€1,143.96"),
        (1_143_950_000_000, "EUR", 9, "1,143.95 EUR", "€1,143.95"),
        (1, "USD", 9, "0.000000001 USD", "$0.01"),
        (20_000_000_000, "USD", 9, "20.00 USD", "$20.00"),
        (20_000_000_001, "USD", 9, "20.000000001 USD", "$20.01"),
        (2000, "JPY", 0, "2,000 JPY", "¥2,000"),
        (2500, "JPY", 2, "25 JPY", "¥25"),
        (2501, "JPY", 2, "25.01 JPY", "¥26"),
        (1234, "KWD", 3, "1.234 KWD", "1.234 KWD"),
        (1500, "XRP", 6, "0.001500 XRP", "0.001500 XRP"),
        (2000, "CAD", 2, "20.00 CAD", "CA$20.00"),
        (LARGEST, "JPY", 0, "18,446,744,073,709,551,615 JPY", "¥18,446,744,073,709,551,615"),
        (LARGEST, "USD", 2, "184,467,440,737,095,516.15 USD", "$184,467,440,737,095,516.15"),
        (LARGEST, "XYZ", 255, f"0.{'0' * 235}{LARGEST} XYZ", f"0.{'0' * 235}{LARGEST} XYZ"),
    ],
)
def test_an_amount_is_exact_and_a_price_has_its_currencys_decimals_and_is_never_too_low(
    value: int, code: str, scale: int, exact: str, price: str
) -> None:
    amount = Amount(value, code, scale)
    assert plain(reads("en").amount(amount)) == exact
    assert plain(reads("en").price(amount)) == price


@pytest.mark.parametrize(
    ("debit", "receive", "said"),
    [
        (Amount(1853, "EUR", 2), Amount(2000, "USD", 2), "1 EUR = 1.0793 USD"),
        (Amount(100, "USD", 2), Amount(15_000, "JPY", 0), "1 USD = 15,000 JPY"),
        (Amount(3, "KWD", 3), Amount(1, "USD", 2), "1 KWD = 3.3333 USD"),
        (Amount(15_075, "JPY", 0), Amount(100_00, "USD", 2), "1 USD = 150.75 JPY"),
        (Amount(2**64 - 1, "JPY", 0), Amount(1, "XRP", 9), None),
        (Amount(5, "EUR", 2), Amount(5, "USD", 2), "1 EUR = 1 USD"),
        (Amount(5, "EUR", 2), Amount(0, "USD", 2), None),
        (Amount(1853, "USD", 2), Amount(2000, "USD", 2), None),
        (Amount(0, "EUR", 2), Amount(2000, "USD", 2), None),
    ],
)
def test_the_rate_is_never_a_fraction(debit: Amount, receive: Amount, said: str | None) -> None:
    rate = reads("en").rate(debit, receive)
    assert (rate is None) if said is None else plain(rate or "").startswith(said)


def test_dates_are_written_as_the_reader_writes_them() -> None:
    at = datetime(2026, 3, 1, 14, 5, tzinfo=UTC)
    said = {tag: reads(tag).date(at).replace("\u202f", " ") for tag in ("en", "de", "es")}
    assert said == {
        "en": "March 1, 2026, 2:05 PM",
        "de": "1. März 2026, 14:05",
        "es": "1 de marzo de 2026, 14:05",
    }


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "stage", ["open", "awaiting_approval", "processing", "completed", "canceled"]
)
def test_a_page_is_in_one_language_from_its_tag_to_its_last_word(
    visitor: Customer, language: str, stage: str
) -> None:
    page = visitor.open(visitor.put_in(stage, locale=language)).page
    html = page.one("html").attributes
    assert html == {"lang": language, "dir": "rtl" if language == "ar" else "ltr"}
    if language != "en":
        english = {forms(ENGLISH[name])[0] for name in NAMES if " " in forms(ENGLISH[name])[0]}
        assert not [said for said in english if said in page.main]


def test_an_error_speaks_the_browsers_language_and_never_the_flows(visitor: Customer) -> None:
    headers = {"accept-language": "de-AT"}
    session = visitor.world.create()
    answer = visitor.form(session, "alice@wallet.example", headers=headers)
    assert answer.page.one("html").attributes["lang"] == "de-AT"
    assert "Das sieht nach einer E-Mail-Adresse aus." in answer.page.main
    assert "Ihnen wurde nichts berechnet." in answer.page.main
    missing = visitor.get("/pay/cs_0000000000000000000000", headers=headers)
    assert "Wir haben diese Zahlung nicht gefunden" in missing.page.main
    waits = visitor.world.create(locale="es")
    assert "Pague con su billetera" in visitor.open(waits, headers=headers).page.main


def test_words_of_others_keep_their_own_direction(visitor: Customer) -> None:
    world = visitor.world
    visitor.give(name="متجر", locale="en")
    assert "Questions? Contact \u2068متجر\u2069:" in visitor.open(world.create()).body


def test_the_guide_names_sentences_and_buttons_of_the_pages() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "pages.md").read_text("utf-8")
    table = guide.split("## Error messages")[1].split("\n## ")[0]
    rows = re.findall(r"^\|(?! what|---)(.*)\|$", table, re.M)
    assert len(rows) > 10
    sentences = {form.rstrip(".") for one in ENGLISH.values() for form in forms(one)}
    for row in rows:
        _, said, button = (cell.strip() for cell in row.split("|"))
        assert {said, button} <= sentences
