"""Bodies are parsed and serialized like JavaScript; the expected texts are Node's."""

from __future__ import annotations

import pytest

from sandbox.wallets import javascript


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b":1,"a":2}', '{"b":1,"a":2}'),
        ('{"10":1,"x":2,"2":3}', '{"2":3,"10":1,"x":2}'),
        ('{"01":1,"-1":2,"4294967295":3,"7":4}', '{"7":4,"01":1,"-1":2,"4294967295":3}'),
        ('{"a":1,"a":2}', '{"a":2}'),
        ("[1.0,1e-07,-0.0,100,1e21,123456789012345680000]",
         "[1,1e-7,0,100,1e+21,123456789012345680000]"),
        ("[9007199254740993,0.1,5e-324,1e400,0.000001]",
         "[9007199254740992,0.1,5e-324,null,0.000001]"),
        ('["\\u00e9\\ud83d\\ude00\\u2028\\u0007\\"\\/"]', '["é😀\u2028\\u0007\\"/"]'),
        ('["\\ud800x"]', '["\\ud800x"]'),
        ("[true,false,null]", "[true,false,null]"),
        ("{}", "{}"),
    ],
)  # fmt: skip
def test_a_body_is_written_as_javascript_writes_it(text: str, expected: str) -> None:
    assert javascript.stringify(javascript.parse(text.encode())) == expected


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b"{oops", b"", b"\xff", b"[" * 100_000])
def test_what_json_parse_refuses_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        javascript.parse(text)
