"""The parts that both documents have: schemas of models, parameters, answers and errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import get_original_bases, is_typeddict

from checkout import answers as native
from checkout.domain.ground import errors as e
from checkout.domain.ground.errors import CheckoutError
from checkout.version import VERSION

Object = dict[str, Any]
Errors = Collection[type[CheckoutError]]

EXAMPLE_REQUEST_ID: Final = "req_5dTMd0wvG8PZx5nNq2LrYb"
REPLAYED: Final = {
    "Idempotent-Replayed": {
        "description": "`true` if this is the response to an earlier request with this key.",
        "schema": {"const": "true"},
    }
}
KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Your key for this request. For 24 hours, the same key with the same request "
    "returns the same response and changes nothing; with another request it is rejected.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
    "example": "order-1234",
}
POST: Final = (
    e.InvalidJson,
    e.BodyTooLarge,
    e.ContentTypeInvalid,
    e.ParameterUnknown,
    e.IdempotencyKeyInvalid,
    e.IdempotencyKeyReused,
)
CREATE: Final = (
    *POST,
    e.ParameterMissing,
    e.ParameterInvalid,
    e.ParameterInvalidInteger,
    e.UrlInvalid,
    e.MerchantSuspended,
    e.MerchantUnproven,
    e.AmountTooSmall,
    e.AmountTooLarge,
    e.AmountNotRepresentable,
    e.CurrencyMismatch,
    e.CurrencyNotSupported,
)
END: Final = (*POST, e.SessionUnexpectedState, e.SessionBusy, e.PaymentInProgress)
# Errors of the gateway, which no flow raises.
_BARE: Final = {429: "rate_limited", 500: "internal_error"}


_REF: Final = "#/components/schemas/{model}"
_CONFIG: Final = ConfigDict(use_attribute_docstrings=True)
for each in filter(is_typeddict, vars(native).values()):
    each.__pydantic_config__ = _CONFIG


# The default of a field that not all answers have.
ABSENT: Final[Any] = None


class Answer(BaseModel):
    """An object of an answer of /v1, or an error."""

    model_config = _CONFIG


class ErrorDetails(Answer):
    type: str
    code: str
    """Stable; for programs."""
    message: str
    """For people; may change."""
    param: str = ABSENT
    """The field that is wrong."""
    doc_url: Annotated[str, Field(examples=["https://checkout.example/docs#parameter_missing"])]
    """The line about this code in the reference of your deployment."""
    request_id: Annotated[str, Field(pattern="^req_", examples=[EXAMPLE_REQUEST_ID])]


class Error(Answer):
    error: ErrorDetails


@dataclass(frozen=True)
class Answers:
    """The errors of an API: the status and type of each, and those that any operation has."""

    place: Callable[[type[CheckoutError]], tuple[int, str]]
    meaning: Mapping[int, str]
    always: Errors
    example_param: str

    def of(
        self,
        model: type,
        meaning: str,
        refusals: Iterable[type[CheckoutError]] = (),
        *,
        status: int = 200,
        headers: Object | None = None,
    ) -> Object:
        """Return the answers of an operation by status."""
        answers = {str(status): answer(meaning, model, headers)}
        possible = {*refusals, *self.always}
        for code in sorted({self.place(each)[0] for each in possible} | {429, 500}):
            answers[str(code)] = self.error(code, possible)
        return answers

    def error(self, status: int, possible: Iterable[type[CheckoutError]]) -> Object:
        """Return the answer with this status, which lists the codes of its errors."""
        codes = sorted(each.code for each in possible if self.place(each)[0] == status)
        headers: Object = {}
        if status == 401:
            headers["WWW-Authenticate"] = {"schema": {"const": "Bearer"}}
        if status == 429:
            headers["Retry-After"] = {"description": "Seconds.", "schema": {"type": "integer"}}
        listed = ", ".join(f"`{code}`" for code in codes or [_BARE[status]])
        return answer(f"{self.meaning[status]} Codes: {listed}.", Error, headers)

    def limit(self, made: Object, possible: Errors) -> None:
        """Write the types and codes of these errors into the schema of errors."""
        fields = made["ErrorDetails"]["properties"]
        fields["type"]["enum"] = sorted({self.place(each)[1] for each in possible} | {"api_error"})
        fields["code"]["enum"] = sorted({each.code for each in possible} | {"internal_error"})
        fields["param"]["examples"] = [self.example_param]


def document(
    title: str, summary: str, description: str, security: Mapping[str, Object], **parts: Any
) -> Object:
    """Return a document with these parts: paths, components, webhooks."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": VERSION,
            "summary": summary,
            "description": description,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "{base_url}",
                "variables": {"base_url": {"default": "https://checkout.example"}},
            }
        ],
        "security": [{name: []} for name in security],
        **parts,
    }


def schemas(*models: type) -> Object:
    """Return the schemas of models, and of the types in them, by name."""
    adapters = [(model, "validation", TypeAdapter[Any](model)) for model in models]
    _, made = TypeAdapter.json_schemas(adapters, ref_template=_REF)  # type: ignore[arg-type]
    for model in filter(is_typeddict, models):
        for base in filter(is_typeddict, get_original_bases(model)):
            # Pydantic reads the docstrings of a class's own fields only.
            documented = TypeAdapter(base).json_schema(ref_template=_REF)
            made["$defs"][model.__name__]["properties"] |= documented["properties"]
    found: Object = plain(made["$defs"])
    for each in found.values():
        if "enum" in each:
            each.pop("description", None)  # it is for readers of the code
    return found


def plain(value: Any) -> Any:
    """Return a schema without titles and defaults; null is one more type of a simple value.

    Generators of typed clients assume that a field with a default is always there; the descriptions
    name the defaults.
    """
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: plain(each)
        for name, each in value.items()
        if not (name == "title" and isinstance(each, str)) and name != "default"
    }
    if isinstance(text := kept.get("description"), str):
        kept["description"] = " ".join(text.split())
    match kept.get("anyOf"):
        case [{"type": str(kind), **rest}, {"type": "null"}] if "enum" not in rest:
            del kept["anyOf"]
            return {"type": [kind, "null"], **rest, **kept}
    return kept


def ref(model: type) -> Object:
    """Return a reference to the model's schema."""
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def answer(meaning: str, model: type, headers: Object | None = None) -> Object:
    """Return one answer, with the header that all have."""
    request_id = {"description": "Quote it when you ask for support.", "schema": {"type": "string"}}
    return {
        "description": meaning,
        "headers": {"Request-Id": request_id, **(headers or {})},
        "content": {"application/json": {"schema": ref(model)}},
    }


def in_path(name: str, pattern: str, **more: Any) -> Object:
    """Return a parameter of the path."""
    schema = {"type": "string", "pattern": f"^{pattern}$"}
    return {"name": name, "in": "path", "required": True, **more, "schema": schema}
