from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.ground.errors import InvalidJson
from checkout.domain.ground.strict_json import parse_object
from tests.support.basics import words

pytestmark = pytest.mark.untraced


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


NO_NUMBERS = words("""
01 +1 .5 NaN Infinity -Infinity 1e999 -1e999 9007199254740992 -9007199254740992
""")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{} {}",
        *(text.encode() for text in words("""null true 1 "x" [] [{}] { {}x {'a':1} {"a":1,}""")),
        *(f'{{"a":{number}}}'.encode() for number in [*NO_NUMBERS, "9" * 200_000]),
        b'{"a":1,"a":1}',
        b'{"b":[{"a":1,"a":2}]}',
        b'{"a":1,"\\u0061":2}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\udc00\\ud800"}',
        b'{"\\ud800":1}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\n"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b"// x\n{}",
        nested(21),
        b"[" * 250_000,
        b'{"a":' * 50_000,
        b"\x00",
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_what_two_parsers_could_read_differently_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidJson):
        parse_object(raw)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"{}", {}),
        (b' {"a" : [1, 1.5, true, null, "x"]}\n', {"a": [1, 1.5, True, None, "x"]}),
        (b'{"a":9007199254740991}', {"a": 2**53 - 1}),
        (b'{"a":-9007199254740991}', {"a": -(2**53) + 1}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"ä":"😀"}'.encode(), {"ä": "😀"}),
        (b'{"a":{"a":1},"b":{"a":1}}', {"a": {"a": 1}, "b": {"a": 1}}),
    ],
)
def test_plain_json_is_read_as_it_is(raw: bytes, value: Any) -> None:
    assert parse_object(raw) == value


def test_twenty_levels_are_allowed() -> None:
    assert parse_object(nested(20))


def test_a_number_with_a_point_or_an_exponent_is_never_an_integer() -> None:
    value = parse_object(b'{"a":12.0,"b":1e2,"c":12}')
    assert [type(value[name]) for name in "abc"] == [float, float, int]


def test_a_body_of_digits_is_refused_before_it_is_converted() -> None:
    """Python converts no more than 4,300 digits: a try would end in another error."""
    with pytest.raises(InvalidJson, match="beyond 2"):
        parse_object(b'{"a":' + b"1" * 262_000 + b"}")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_refused(raw: bytes) -> None:
    with contextlib.suppress(InvalidJson):
        assert isinstance(parse_object(raw), dict)


_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text() | st.floats(-1, 1)
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


@given(st.dictionaries(st.text(), _VALUES))
def test_every_plain_value_survives(value: dict[str, Any]) -> None:
    try:
        assert parse_object(json.dumps(value).encode()) == value
    except InvalidJson as refused:
        assert "nested" in refused.message  # noqa: PT017 - the one reason that such a value can give
