"""Check that each command in the documentation exists, with the variables and options named.

Snippets are the fenced `sh` blocks; mentions are the `code` spans that begin like a command. This
module runs neither: tests/sandbox/test_readme.py runs the README's.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import botocore.session
import pytest
from botocore import xform_name

from checkout import cli
from tests.support.sources import files

SERVICES: Final = botocore.session.get_session()
GLOBAL: Final = {"output", "query", "region"}  # options of every command of the AWS CLI
ROOT: Final = Path(__file__).parents[2]
MAKEFILE: Final = (ROOT / "Makefile").read_text("utf-8")
# Citations (docs/reference) and decisions (docs/decisions) are not instructions.
PAGES: Final = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "docs/howto/**/*.md", "tests/*.md", ".github/**/*.md")
    for page in ROOT.glob(pattern)
    if page.name != "CHANGELOG.md"
)
SNIPPET: Final = re.compile(r"^( *)```(?:sh|bash)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
FENCED: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SNIPPETS: Final = [
    (page, script) for page in PAGES for _, script in SNIPPET.findall(page.read_text("utf-8"))
]
MENTION: Final = re.compile(
    r"(?<!`)`((?:[A-Z_]+=\S+ )*"
    r"(?:make|aws|checkout|python3? -m|\.venv/bin/\w+|\.ci/\w+)(?: [^`]*)?)`(?!`)"
)
INSIDE: Final = re.compile(r"\$\(([^()]*)\)")
ENDS: Final = "();<>|&\n"  # of a simple command
VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*=")
# Programs that are not ours, and words of the shell itself.
OTHERS: Final = re.compile(
    r"apt-get|brew|cat|curl|cut|date|docker|expr|gh|git|grep|jq|ls|mkdir|node|npm|npx|openssl|pip"
    r"|pipx|pre-commit|printf|rm|sam|sed|sleep|tr"
    r"|\.|\[|cd|do|done|echo|else|export|fi|for|if|read|source|test|then|until|while"
)


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: what is set for it, and its words."""

    variables: tuple[str, ...]
    words: tuple[str, ...]
    whole: bool  # false for a mention, which may leave out what is required
    page: str = ""  # the text around it

    def __str__(self) -> str:
        return " ".join((*self.variables, *self.words))


def commands_of(script: str, *, whole: bool) -> Iterator[Command]:
    """Yield the simple commands of a script, also those inside of `$(…)`."""
    script = re.sub(r"(?<=\s)>[\w.-]+", "", script.replace("\\\n", " "))
    while inner := INSIDE.search(script):
        yield from commands_of(inner[1], whole=whole)
        script = script[: inner.start()] + "x" + script[inner.end() :]
    script = re.sub(r"(?<!\S)#.*", "", script)
    lexer = shlex.shlex(script, posix=True, punctuation_chars=ENDS)
    lexer.whitespace, lexer.commenters = " \t", ""
    lexer.wordchars += "…$:,@{}%[]"
    words: list[str] = []
    for token in (*lexer, ";"):
        if set(token) <= set(ENDS) or token in ("{", "}"):
            if words:
                named = sum(1 for _ in takewhile(VARIABLE.match, words))
                yield Command(tuple(words[:named]), tuple(words[named:]), whole)
            words = []
        else:
            words.append(token)


def documented(page: Path) -> Iterator[Command]:
    text = page.read_text("utf-8")
    for _, script in SNIPPET.findall(text):
        for each in commands_of(script, whole=True):
            yield replace(each, page=text)
    for mention in MENTION.findall(FENCED.sub("", text)):
        yield from commands_of(mention, whole=False)


COMMANDS: Final = {page: list(documented(page)) for page in PAGES}


def faults(commands: Iterable[Command]) -> list[str]:
    """Return each command that cannot be typed, with the reason."""
    found = []
    for each in commands:
        try:
            require(each)
        except AssertionError as error:
            found.append(f"`{each}`: {error}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_can_be_typed(page: Path) -> None:
    assert faults(COMMANDS[page]) == []


def require(command: Command) -> None:
    if not command.words:
        return  # an assignment alone
    program, *arguments = command.words
    if program == "make":
        require_targets(command, arguments)
    elif program in ("checkout", ".venv/bin/checkout"):
        installed = program != "checkout" or re.search(r"pip install|bin/activate", command.page)
        assert installed or not command.whole, "not on the PATH: .venv/bin/checkout is"
        require_checkout(arguments, whole=command.whole)
    elif command.words[:3] == (".venv/bin/python", "-m", "checkout.cli"):
        require_checkout(arguments[2:], whole=command.whole)
    elif program in ("python", "python3", ".venv/bin/python"):
        require_module(program, arguments)
    elif program == "aws":
        require_aws(arguments, whole=command.whole)
    elif "/" in program:
        assert os.access(ROOT / program, os.X_OK), f"{program} is no program"
    elif command.whole:
        known = OTHERS.fullmatch(program) or any(f"{program}()" in script for _, script in SNIPPETS)
        assert known, f"{program} is neither ours nor among the programs that a reader has"


def test_each_snippet_is_valid_shell() -> None:
    for page, script in SNIPPETS:
        text = script.replace("…", "x")
        checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        assert checked.returncode == 0, f"{page}: {checked.stderr}"


def test_the_commands_are_found() -> None:
    texts = {str(each) for commands in COMMANDS.values() for each in commands}
    assert {"make dev", "make test"} <= texts
    assert any(re.match(r"\.venv/bin/(checkout|.* checkout\.cli) webhook ", each) for each in texts)


def test_what_cannot_be_typed_is_noticed() -> None:
    for wrong in (
        "make nonsense",
        "make dev NONSENSE=1",
        "NONSENSE=1 make dev",
        "checkout nonsense",
        ".venv/bin/checkout webhook --nonsense",
        ".venv/bin/checkout setup --name x",  # and no wallet
        "python -m checkout.cli setup",
        ".venv/bin/python -m sandbox.nonsense",
        ".venv/bin/python -m sandbox --nonsense",
        ".ci/nonsense",
        "aws sqs start-message-move-task",  # from where?
        "aws sqs move-messages --source-arn x",
        "aws kms describe-key --key x",
        "echo $(aws nonsense describe-key)",
        "mkae dev",
    ):
        assert faults(commands_of(wrong, whole=True)), wrong


@cache
def read_by_the_local_world() -> str:
    """Return every module in which a variable of the environment can be read."""
    return "".join(path.read_text("utf-8") for path in files(".py", "layers", "sandbox"))


def require_targets(command: Command, arguments: list[str]) -> None:
    targets = [each for each in arguments if not VARIABLE.match(each) and each[0] not in "-…"]
    recipes = ""
    for target in targets:
        rule = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
        assert rule is not None, f"no target {target}"
        recipes += rule[1]
    for variable in (*command.variables, *filter(VARIABLE.match, arguments)):
        name = variable.partition("=")[0]
        given = rf"\({name}\b|\$\${name}\b|^{name} \?="
        used = re.search(given, recipes + MAKEFILE.split(".PHONY")[0], re.M)
        assert used or f'"{name}"' in read_by_the_local_world(), name


def require_checkout(arguments: list[str], *, whole: bool) -> None:
    typed = arguments
    if not whole:
        typed = [*(each for each in arguments[:1] if not each.startswith("-")), "--help"]
    code: object = 0
    try:
        with redirect_stdout(io.StringIO()) as said:
            cli.command_line().parse_args(typed)
    except SystemExit as ended:
        code = ended.code
    assert not code, f"checkout {shlex.join(typed)}"
    if not whole:
        require_options(said.getvalue(), arguments)


def require_aws(arguments: list[str], *, whole: bool) -> None:
    """Hold a command of the AWS CLI against botocore's models, of which the CLI is made."""
    service, operation, *rest = arguments
    options = {each.partition("=")[0][2:] for each in rest if each.startswith("--")}
    if (service, operation) == ("cloudformation", "deploy"):  # the CLI's own
        assert options <= {"region", "stack-name", "template-file", "parameter-overrides"}
        template = next((ROOT / each for each in rest if each.startswith("operations/")), None)
        assert template is not None, "it names no template"
        taken = set(re.findall(r"^  (\w+):$", parameters_in(template), re.MULTILINE))
        assert {each.partition("=")[0] for each in rest if re.match(r"[A-Z]\w+=", each)} <= taken
        return
    operations = operations_of(service)
    assert operation in operations, f"aws {service} has no {operation}"
    taken = operations[operation].input_shape
    named = {xform_name(each, "-") for each in taken.members} if taken else set()
    assert options <= named | GLOBAL, f"aws {service} {operation}: {options - named - GLOBAL}"
    required = {xform_name(each, "-") for each in taken.required_members} if taken else set()
    assert not whole or required <= options, f"aws {service} {operation}: {required - options}"


def parameters_in(template: Path) -> str:
    """Return the text of a template's parameters."""
    return template.read_text("utf-8").partition("\nParameters:\n")[2].partition("\nRules:")[0]


@cache
def operations_of(service: str) -> dict[str, Any]:
    """Return the operations of a service by the names that they have on the command line."""
    assert service in SERVICES.get_available_services(), f"no service {service}"
    model = SERVICES.get_service_model(service)
    return {xform_name(each, "-"): model.operation_model(each) for each in model.operation_names}


def require_module(program: str, arguments: list[str]) -> None:
    if arguments[:1] != ["-m"]:
        assert arguments[0] == "-c" or (ROOT / arguments[0]).exists(), arguments[0]
        return
    module, *rest = arguments[1:]
    if module.partition(".")[0] in sys.stdlib_module_names:
        return
    assert program == ".venv/bin/python" or module == "pip", (
        f"{program} does not have {module}; .venv/bin/python does"
    )
    if any(each.startswith("-") for each in rest):
        require_options(help_of(module), rest)
    else:
        assert find_spec(module) is not None, module


def require_options(help_text: str, arguments: list[str]) -> None:
    for argument in arguments:
        if argument.startswith("--"):
            option = argument.partition("=")[0]
            assert re.search(rf"{option}\b", help_text), f"no option {option}"


@cache
def help_of(module: str) -> str:
    """Return what `--help` prints, with the paths that `pip install --editable .` gives."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/common:functions", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
