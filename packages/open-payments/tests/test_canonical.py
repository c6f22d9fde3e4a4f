"""Test canonical JSON: byte for byte as a JavaScript server would print it again."""

from __future__ import annotations

import json
import re

import pytest
from client_script import load
from hypothesis import given
from hypothesis import strategies as st

from open_payments.signatures import canonical

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
texts = st.text(st.characters(exclude_categories=["Cs"]))
keys = texts.filter(lambda key: not (key.isascii() and key.isdigit()))
scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20
)


@given(values)
def test_canonical_json_reads_back_as_the_same_value(value: object) -> None:
    assert json.loads(canonical(value)) == value


@given(values)
def test_canonical_json_has_no_space_outside_texts_and_escapes_nothing_needlessly(
    value: object,
) -> None:
    printed = canonical(value).decode()
    assert not re.search(r"\s", TEXT.sub("", printed))
    for text in TEXT.findall(printed):  # the only escapes that JSON.stringify writes
        assert set(re.findall(r"\\(.)", text)) <= set('"\\bfnrtu')


def test_trap_01_the_body_is_what_json_stringify_prints_not_what_json_dumps_does() -> None:
    value = {"description": "Café – 2 × €/😀", "line": "\u2028\u0000\n", "list": [1, True, None]}
    assert canonical(value) == (
        '{"description":"Café – 2 × €/😀","line":"\u2028\\u0000\\n","list":[1,true,null]}'.encode()
    )
    assert canonical(value) != json.dumps(value).encode()


def test_recorded_bodies_of_the_reference_client_are_reproduced() -> None:
    bodies = [request["body"] for request in load("wire-capture.json")["requests"]]
    bodies += [vector["request"]["body_utf8"] for vector in load("vectors.json")["positive"]]
    bodies = [body for body in bodies if body]
    assert len(bodies) == 8
    for body in bodies:
        assert canonical(json.loads(body)).decode() == body


REFUSED: dict[str, list[object]] = {
    "float": [1.0, {"a": [1e-7]}, float("nan")],
    "2\\^53": [2**53, -(2**53)],
    "integer-like": [{"10": "a"}, {"0": "a"}],
    "must be a string": [{1: "a"}],
    "lone surrogate": ["\ud800", {"\udfff": "a"}],
    "bytes": [b"bytes"],
    "set": [{"a": {1, 2}}],
}


@pytest.mark.parametrize(
    ("value", "complaint"), [(each, told) for told, values in REFUSED.items() for each in values]
)
def test_what_javascript_would_change_is_refused(value: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        canonical(value)


@pytest.mark.parametrize("key", ["00", "-1", "1.0", "1a", "٣", ""])
def test_keys_that_only_resemble_integers_are_kept(key: str) -> None:
    assert json.loads(canonical({key: 1})) == {key: 1}
