"""A Protocol stands for several classes. Where there is one class, the class itself is the type."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest

from tests.support.sources import files, parsed

# What a real service does that cannot run here: one class is deployed, the other is a test's.
ONE_IS_A_TESTS = {
    "Clock": "the machine's clock moves by itself; in tests it is moved by hand",
    "Hosts": "the resolver asks the network; tests open no socket",
    "Mail": "Amazon SES sends to people; tests keep the e-mails",
}
# Objects of libraries and of Lambda: they ship no types, and have more methods than are used.
OF_OTHERS = {
    "Client": "boto3's client of DynamoDB",
    "SqsClient": "boto3's client of SQS",
    "SecretsClient": "boto3's client of Secrets Manager",
    "Context": "Lambda's context object",
}

Members = dict[str, set[str]]
DEPLOYED = ("layers", "packages/open-payments/src", "functions")
FOR_TESTS = "testing.py"  # of the client: deployed, and used by tests alone


def _method(node: ast.FunctionDef, name: str = "") -> str:
    """Return `name(parameters)`; of a property, which a field implements, the name."""
    if any(ast.unparse(each) == "property" for each in node.decorator_list):
        return node.name
    given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    parameters = ", ".join(each.arg for each in given if each.arg != "self")
    return f"{name or node.name}({parameters})"


def _members(node: ast.ClassDef) -> set[str]:
    """Return the methods and fields that a class has in its body, or sets as `self.name`."""
    methods = {_method(each) for each in node.body if isinstance(each, ast.FunctionDef)}
    fields = {each.target for each in node.body if isinstance(each, ast.AnnAssign)}
    assigned = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    return methods | {each.id for each in fields if isinstance(each, ast.Name)} | assigned


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(each).partition("[")[0].rpartition(".")[2] for each in node.bases}


def declared(tree: ast.AST) -> Members:
    """Return the members of each Protocol."""
    return {
        node.name: _members(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Protocol" in _bases(node)
    }


def implementing(tree: ast.AST) -> Members:
    """Return the members of each class but Protocols, with those of its bases in the same file.

    A function implements a Protocol that is called.
    """
    found: Members = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and "Protocol" not in _bases(node):
            inherited = (found.get(base, set()) for base in _bases(node))
            found[node.name] = _members(node).union(*inherited)
        elif isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, {_method(node, "__call__")})
    return found


def _classes(protocols: Members, *folders: str) -> dict[str, set[str]]:
    """Return the classes and functions in these folders that implement each Protocol."""
    found = defaultdict(set)
    for path in files(".py", *folders):
        if path.name == FOR_TESTS:
            continue
        for name, members in implementing(parsed(path)).items():
            for protocol, wanted in protocols.items():
                if wanted <= members:
                    found[protocol].add(f"{path}:{name}")
    return found


def test_every_protocol_has_two_implementations() -> None:
    protocols: Members = {}
    for path in files(".py", *DEPLOYED):
        protocols |= declared(parsed(path))
    assert {*ONE_IS_A_TESTS, *OF_OTHERS} <= set(protocols)
    assert {"Concurrency", "Receivers", "Transport"} <= set(protocols)
    deployed = _classes(protocols, *DEPLOYED)
    tested = _classes(protocols, "tests/support")
    for name in protocols.keys() - OF_OTHERS.keys():
        wanted = 1 if name in ONE_IS_A_TESTS else 2
        assert len(deployed[name]) >= wanted, f"{name}: use {deployed[name]} itself"
    assert [name for name in ONE_IS_A_TESTS if len(deployed[name]) > 1] == []
    assert [name for name in ONE_IS_A_TESTS if not tested[name]] == []


@pytest.mark.parametrize(
    ("text", "implemented"),
    [
        ("class A:\n    def get(self, key): ...\n    x: int", True),
        ("class A:\n    def get(self, key):\n        self.x = 1", True),
        ("class A:\n    x: int\nclass B(A):\n    def get(self, key): ...", True),
        ("class A:\n    x: int", False),
        ("class A(Protocol):\n    def get(self, key): ...\n    x: int", False),
    ],
)
def test_a_class_implements_what_it_has_every_member_of(text: str, implemented: bool) -> None:
    protocol = ast.parse("class P(Protocol):\n    x: int\n    def get(self, key): ...")
    [wanted] = declared(protocol).values()
    assert any(wanted <= each for each in implementing(ast.parse(text)).values()) is implemented


def test_a_function_implements_a_protocol_that_is_called() -> None:
    [wanted] = declared(
        ast.parse("class P(Protocol):\n    def __call__(self, do, items): ...")
    ).values()
    found = implementing(ast.parse("def in_turn(do, items, /): ...\ndef other(do): ..."))
    assert [name for name, each in found.items() if wanted <= each] == ["in_turn"]
