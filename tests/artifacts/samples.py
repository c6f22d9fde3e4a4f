"""Values that a parameter of the template may have, and that a program could misread."""

from __future__ import annotations

SAMPLES = [
    "",
    "plain",
    "200,400",
    "false",
    "Cedar Bank | https://cedar.example/{name} | https://cedar.example; Harbor | https://h.example",
    " blanks  around ",
    "say \"yes\" and 'no'",
    '"quoted"',
    "'quoted'",
    '"',
    "'",
    "\\",
    "ends with a backslash\\",
    "a\\b \\ c \\\" d \\' e \\\\",
    "Name=value ParameterKey=A,ParameterValue=B",
    "file://elsewhere.yaml",
    "k\u00e4se \U0001f9c0 $HOME `x` #not: a comment",
]
