"""Real answers, held against the published OpenAPI documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema_rs import Draft202012Validator

if TYPE_CHECKING:
    from tests.support.merchant_api import Answer

DOCS = Path(__file__).parents[2] / "docs"


class Documented:
    """A document of docs/."""

    def __init__(self, published: str) -> None:
        self.document: dict[str, Any] = json.loads((DOCS / published).read_text("utf-8"))
        self.schemas: dict[str, Any] = self.document["components"]["schemas"]
        self.paths = {
            path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in self.document["paths"]
        }
        self.validator = cache(self._validator)

    def check(self, method: str, path: str, answer: Answer) -> None:
        """Raise if the document has the operation, but not this answer."""
        template = next((each for each, form in self.paths.items() if form.fullmatch(path)), None)
        operation = template and self.document["paths"][template].get(method.lower())
        if not operation:
            return
        documented = operation["responses"][str(answer.status)]
        self.check_body(documented["content"]["application/json"]["schema"], answer.body)
        if "error" in answer.json:
            assert f"`{answer.code}`" in documented["description"]

    def check_body(self, schema: dict[str, Any], body: str) -> None:
        """Raise unless the body is what the referenced schema says, and nothing more."""
        self.validator(schema["$ref"].rpartition("/")[2]).validate(json.loads(body))

    def _validator(self, name: str) -> Any:
        schema = {"$ref": f"#/components/schemas/{name}"}
        closed = {
            each: form | ({"additionalProperties": False} if "properties" in form else {})
            for each, form in self.schemas.items()
        }
        components = {"components": {"schemas": closed}}
        return Draft202012Validator(schema | components, validate_formats=True)


NATIVE = Documented("openapi.json")
STRIPE = Documented("openapi-v1.json")


def check(method: str, path: str, answer: Answer) -> None:
    """Raise if a document has the request's operation, but not this answer."""
    for each in (NATIVE, STRIPE):
        each.check(method, path, answer)


def every_reference(value: Any) -> Iterator[str]:
    """Yield what each `$ref` of a document names."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from every_reference(item)
    elif isinstance(value, list):
        for item in value:
            yield from every_reference(item)
