"""template.yaml as data, so that `make dev` and the tests use the same resources as AWS.

Intrinsic functions stay in the data, such as {"Ref": "BaseUrl"}. `default` and `stack_name` resolve
two kinds of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

TEMPLATE: Final = Path(__file__).parent.parent / "template.yaml"

Resource = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """YAML loader that reads `!Ref x` as {"Ref": x} and `!Other x` as {"Fn::Other": x}."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _intrinsic)


@cache
def template() -> dict[str, Any]:
    """Return the whole template; do not modify it."""
    return read(TEMPLATE)


def read(path: Path) -> dict[str, Any]:
    """Return a CloudFormation template as data."""
    loaded = yaml.load(path.read_text("utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    assert isinstance(loaded, dict)
    return loaded


def resources(kind: str) -> dict[str, Resource]:
    """Return the properties of all resources of a type, by logical id."""
    found = template()["Resources"].items()
    return {name: each["Properties"] for name, each in found if each["Type"] == kind}


def default(value: Any) -> Any:
    """Resolve `!Ref X` as the default of the parameter X."""
    return template()["Parameters"][value["Ref"]]["Default"]


def stack_name(value: Any, prefix: str) -> str:
    """Resolve `!Sub ${AWS::StackName}…` with `prefix` as the stack's name."""
    text: str = value["Fn::Sub"]
    return text.replace("${AWS::StackName}", prefix)


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the HTTP API, with its function and handler (such as `api.app.handler`)."""

    key: str
    handler: str
    function: str


def routes() -> list[Route]:
    """Return the HTTP API's routes."""
    integrations = resources("AWS::ApiGatewayV2::Integration")
    functions = resources("AWS::Serverless::Function")
    found = []
    for route in resources("AWS::ApiGatewayV2::Route").values():
        integration = route["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")
        function = integrations[integration]["IntegrationUri"]["Ref"].removesuffix(".Alias")
        found.append(Route(route["RouteKey"], functions[function]["Handler"], function))
    return found
