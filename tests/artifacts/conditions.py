"""A translated template with its conditions decided, as CloudFormation decides them.

CloudFormation evaluates all conditions before it creates anything: a resource whose condition does
not hold, and the other branch of each `Fn::If`, are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_NOTHING: Final = {"Ref": "AWS::NoValue"}
_NAMED: Final = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")


class Decided:
    """The resources that a translated template has with these parameters."""

    def __init__(self, template: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
        defaults = {name: str(each["Default"]) for name, each in template["Parameters"].items()}
        self._parameters = {"AWS::Region": "us-east-1", **defaults, **parameters}
        self._conditions = template["Conditions"]
        self._rules = template["Rules"]
        self.resources: dict[str, Any] = {
            name: self._chosen(each)
            for name, each in template["Resources"].items()
            if "Condition" not in each or self._holds({"Condition": each["Condition"]})
        }

    def refused(self) -> list[str]:
        """Return why CloudFormation would refuse these parameters."""
        return [
            each["AssertDescription"]
            for rule in self._rules.values()
            if self._holds(rule["RuleCondition"])
            for each in rule["Assertions"]
            if not self._holds(each["Assert"])
        ]

    def needs(self) -> dict[str, set[str]]:
        """Return the resources that each resource refers to, and so waits for."""
        return {name: set(_references(each)) - {name} for name, each in self.resources.items()}

    def missing(self) -> set[str]:
        """Return what is referred to and is neither a resource nor a parameter."""
        named = set().union(*self.needs().values())
        return {
            each
            for each in named - self.resources.keys() - self._parameters.keys()
            if not each.startswith("AWS::")
        }

    def _holds(self, condition: Mapping[str, Any]) -> bool:
        [(kind, inner)] = condition.items()
        if kind == "Condition":
            return self._holds(self._conditions[inner])
        if kind == "Fn::Equals":
            one, other = (self._text(each) for each in inner)
            return one == other
        found = [self._holds(each) for each in inner]
        return {"Fn::Not": not found[0], "Fn::And": all(found), "Fn::Or": any(found)}[kind]

    def _text(self, value: Any) -> str:
        return self._parameters[value["Ref"]] if isinstance(value, dict) else str(value)

    def _chosen(self, value: Any) -> Any:
        """Return a value with the branch that holds in place of each `Fn::If`."""
        if isinstance(value, list):
            return [each for each in map(self._chosen, value) if each != _NOTHING]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Fn::If"}:
            condition, yes, no = value["Fn::If"]
            return self._chosen(yes if self._holds({"Condition": condition}) else no)
        found = {name: self._chosen(each) for name, each in value.items()}
        return {name: each for name, each in found.items() if each != _NOTHING}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == "Ref":
                yield each
            elif name == "Fn::GetAtt":
                yield each[0] if isinstance(each, list) else each.split(".")[0]
            elif name == "Fn::Sub":
                text, given = each if isinstance(each, list) else (each, {})
                yield from set(_NAMED.findall(text)) - given.keys()
                yield from _references(list(given.values()))
            elif name == "DependsOn":
                yield from each if isinstance(each, list) else [each]
            else:
                yield from _references(each)
