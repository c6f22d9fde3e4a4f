"""The request models: types, lengths and bounds of single fields.

Rules about several fields are in `domain/session/new.py`. Parsing is strict: a string in place of a
number, `true` or `12.0` in place of an integer, any `null` and any unknown field are errors. The
fields' descriptions appear in the OpenAPI document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Request
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from checkout.domain.ground.errors import ParameterInvalid, ParameterUnknown
from checkout.domain.ground.grammar import EMAIL_MAX, PICTURE_URL_MAX, email_of
from checkout.domain.ground.languages import LANGUAGES, TAG_MAX, language_of
from checkout.domain.ground.money import QUANTITY_MAX, UNIT_AMOUNT_MAX
from checkout.domain.ground.names import shown
from checkout.domain.session.collect import (
    LABEL_MAX,
    OPTION_MAX,
    OPTIONS_MAX,
    QUESTIONS_MAX,
    Collect,
    Detail,
    Place,
    Question,
    QuestionKind,
    listed_countries,
)
from checkout.domain.session.new import NewSession
from checkout.domain.session.record import (
    METADATA_VALUE_MAX,
    SUBTITLE_MAX,
    TITLE_MAX,
    LineItem,
    Status,
)
from checkout.flows.session.lists import PAGE_MAX, ListQuery
from checkout.web import PARAM_MAX, no_parameter, validated

EXPANDABLE: Final = "payment_attempts"
# This time is in the year 2286. A larger value is probably in milliseconds, sent by mistake.
UNIX_SECONDS_MAX: Final = 9_999_999_999
TIME_FORM: Final = "A time in Unix seconds, such as 1795781486."
METADATA_KEYS_MAX: Final = 50
METADATA_KEY_MAX: Final = 40  # characters
REFERENCE_MAX: Final = 200  # characters
AMOUNT_FORM: Final = (
    "An amount is a whole number in the currency's smallest unit, without quotes: 9.99 USD is 999."
)
NULL_CHARACTER: Final = (
    "The character U+0000 is not allowed, because many databases cannot store it."
)
_CURRENCY: Final = re.compile(r"^[A-Za-z]{3}$")

Scalar = Annotated[
    str | int | float | bool | None,
    WithJsonSchema(
        {"type": ["string", "number", "boolean", "null"], "maxLength": METADATA_VALUE_MAX}
    ),
]


def storable(value: Any) -> Any:
    """Refuse U+0000 in a text. Shops store our answers, and PostgreSQL cannot store U+0000."""
    if isinstance(value, str) and "\0" in value:
        raise PydanticCustomError("null_character", NULL_CHARACTER)
    return value


class Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        """Check the texts of each field, including those of `metadata`."""
        return storable(value)


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _letters(value: Any) -> Any:
    if isinstance(value, str) and _CURRENCY.fullmatch(value) is None:
        raise PydanticCustomError("currency_form", "A currency is three letters, such as usd.")
    return value


def whole(value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticCustomError("parameter_invalid_integer", AMOUNT_FORM)
    return value


def in_bounds(value: int) -> int:
    if value < 0:
        raise PydanticCustomError("amount_too_small", "This amount must be at least 0.")
    if value > UNIT_AMOUNT_MAX:
        raise PydanticCustomError(
            "amount_too_large", f"This amount must be at most {UNIT_AMOUNT_MAX}."
        )
    return value


def _spoken(value: str) -> str:
    if language_of(value) is None:
        raise PydanticCustomError(
            "locale_unknown",
            "The supported languages are {languages}.",
            {"languages": ", ".join(LANGUAGES)},
        )
    return value


def _metadata_form(value: Any) -> Any:
    """Check the lengths of keys and values.

    Pydantic's own errors about the lengths would name the types that a value can have.
    """
    if not isinstance(value, dict):
        raise PydanticCustomError("metadata_type", "Metadata must be an object.")
    if len(value) > METADATA_KEYS_MAX:
        raise PydanticCustomError(
            "metadata_size", f"Metadata holds at most {METADATA_KEYS_MAX} keys."
        )
    for key, item in value.items():
        storable(key)
        storable(item)
        if not 1 <= len(key) <= METADATA_KEY_MAX:
            raise PydanticCustomError(
                "metadata_key",
                f"A metadata key has 1 to {METADATA_KEY_MAX} characters.",
                {"within": (key,) if key else ()},
            )
        if isinstance(item, dict | list):
            raise PydanticCustomError(
                "scalar_type",
                "A metadata value is a string, a number, true, false or null.",
                {"within": (key,)},
            )
        if isinstance(item, str) and len(item) > METADATA_VALUE_MAX:
            raise PydanticCustomError(
                "metadata_value",
                f"A metadata value has at most {METADATA_VALUE_MAX} characters.",
                {"within": (key,)},
            )
    return value


Metadata = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=METADATA_KEY_MAX)], Scalar],
    Field(json_schema_extra={"maxProperties": METADATA_KEYS_MAX}),
    BeforeValidator(_metadata_form),
]


class ProductData(Form):
    """The product that is sold."""

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=TITLE_MAX,
            description="Shown to the customer. Surrounding whitespace is removed before counting.",
            examples=["Espresso beans, 1 kg"],
        ),
        BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value),
    ]
    description: Annotated[
        str,
        Field(max_length=SUBTITLE_MAX, json_schema_extra=_without_default),
    ] = ""
    image: Annotated[
        str,
        Field(
            description="URL of a picture: https, at a host with a public name, at most "
            f"{PICTURE_URL_MAX} characters. The page shows pictures only for the first two items "
            "that have one, each in a small square.",
            examples=["https://shop.example/beans.webp"],
            json_schema_extra=_without_default,
        ),
    ] = ""


class PriceData(Form):
    """The price of one unit."""

    currency: Annotated[
        str,
        Field(
            pattern=_CURRENCY.pattern,
            description="Three-letter code of your wallet's currency, in upper or lower case; "
            "stored in lowercase. It must be the same for all line items.",
            examples=["usd"],
        ),
        BeforeValidator(_letters),
    ]
    product_data: ProductData
    unit_amount: Annotated[
        int,
        Field(
            description="Price in the currency's smallest unit (ISO 4217: cents for USD, yen for "
            "JPY).",
            examples=[1000],
            json_schema_extra={"minimum": 0, "maximum": UNIT_AMOUNT_MAX},
        ),
        BeforeValidator(whole),
        AfterValidator(in_bounds),
    ]


class NewLineItem(Form):
    """One position of the purchase."""

    price_data: PriceData
    quantity: Annotated[
        int, Field(ge=1, le=QUANTITY_MAX, description="If absent, 1.", examples=[2])
    ] = 1

    def line_item(self) -> LineItem:
        """Convert this to the domain's line item."""
        product = self.price_data.product_data
        return LineItem(
            currency=self.price_data.currency.lower(),
            name=product.name,
            description=product.description if "description" in product.model_fields_set else None,
            unit_amount=self.price_data.unit_amount,
            quantity=self.quantity,
            image=product.image or None,
        )


_REDIRECT: Final = (
    "Absolute https address (http for localhost while the service's own address is http), at most "
    "2048 characters, without user name, control characters and backslashes. Each "
    "`{CHECKOUT_SESSION_ID}` in path, query or fragment is replaced by the session's id. If the "
    "merchant has set return hosts in the dashboard, the host must be one of them."
)


def printable(value: str) -> str:
    """Refuse a text that a page cannot show."""
    storable(value)
    if not value.strip() or not shown(value):
        raise PydanticCustomError("printable", "This must be printable text.")
    return value


def _email(value: str) -> str:
    """Return an e-mail address without the blanks around it, as the forms of the pages do."""
    found = email_of(value)
    if found is None:
        raise PydanticCustomError("email_form", "This is not an e-mail address.")
    return found


Wish = Literal["optional", "required"]


def _asked(text: str) -> Any:
    return Field(
        description=f"{text}; if absent, the page does not ask for it.",
        json_schema_extra=_without_default,
    )


class CollectQuestion(Form):
    """A question that you ask the customer."""

    label: Annotated[
        str,
        Field(min_length=1, max_length=LABEL_MAX, examples=["Engraving"]),
        AfterValidator(printable),
    ]
    kind: Annotated[
        Literal["text", "numeric", "dropdown"],
        Field(description="The kind of answer: a text, digits, or one of `options`."),
    ]
    required: Annotated[bool, Field(description="Whether the customer must answer.")] = True
    options: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=OPTION_MAX), AfterValidator(printable)]],
        Field(
            max_length=OPTIONS_MAX,
            description="The choices of a `dropdown`. Not allowed for other kinds.",
        ),
    ] = []

    def question(self, number: int) -> Question:
        """Convert this to the domain's question. Raise ParameterInvalid."""
        kind, param = QuestionKind(self.kind), f"collect.questions[{number}].options"
        if (kind is QuestionKind.DROPDOWN) is not bool(self.options):
            raise ParameterInvalid(
                "A dropdown must have choices; other kinds must not.", param=param
            )
        if len(set(self.options)) != len(self.options):
            raise ParameterInvalid("Each choice must be different.", param=param)
        return Question(
            key=f"question{number + 1}",
            label=self.label,
            kind=kind,
            required=self.required,
            options=tuple((each, each) for each in self.options),
        )


class CollectDetails(Form):
    """The details that the page asks the customer for before it asks for the wallet."""

    email: Annotated[Wish | None, _asked("The e-mail address")] = None
    name: Annotated[Wish | None, _asked("The name")] = None
    phone: Annotated[Wish | None, _asked("The phone number")] = None
    shipping: Annotated[Wish | None, _asked("The shipping address, with the name")] = None
    billing: Annotated[Wish | None, _asked("The billing address, with the name")] = None
    ships_to: Annotated[
        list[Annotated[str, AfterValidator(storable)]],
        Field(
            max_length=300,
            description="The countries that a shipping address can be in, as two-letter codes. If "
            "absent, all countries.",
            examples=[["DE", "AT"]],
        ),
    ] = []
    questions: Annotated[list[CollectQuestion], Field(max_length=QUESTIONS_MAX)] = []

    def collect(self, *, email_known: bool) -> Collect:
        """Convert this to the domain's form. Raise ParameterInvalid.

        If `email_known` is true, the shop has sent the e-mail address, so the customer need not
        enter one.
        """
        wishes = {each: getattr(self, each.value) for each in (*Detail, *Place)}
        asked = {each: wish for each, wish in wishes.items() if wish}
        if self.ships_to and Place.SHIPPING not in asked:
            raise ParameterInvalid(
                "Countries apply only to a shipping address, so ask for the shipping address, too.",
                param="collect.ships_to",
            )
        required = {each for each, wish in asked.items() if wish == "required"}
        found = Collect(
            asked=frozenset(asked),
            required=frozenset(required - {Detail.EMAIL} if email_known else required),
            ships_to=listed_countries(self.ships_to, param="collect.ships_to"),
            questions=tuple(each.question(number) for number, each in enumerate(self.questions)),
            email_known=email_known,
        )
        if not found:
            raise ParameterInvalid(
                "Ask for at least one thing, or leave out this parameter.", param="collect"
            )
        return found


# The fields of CreateSession that have another name or form in NewSession.
_OTHER_FORM: Final = frozenset({"mode", "line_items", "metadata", "collect"})


class CreateSession(Form):
    """A checkout session to be created."""

    mode: Annotated[Literal["payment"], Field(description="Only `payment`.")]
    line_items: Annotated[list[NewLineItem], Field(min_length=1, max_length=100)]
    success_url: Annotated[
        str,
        Field(
            description=f"The page to which the customer goes after paying. {_REDIRECT}",
            examples=["https://shop.example/thanks?session={CHECKOUT_SESSION_ID}"],
        ),
    ]
    cancel_url: Annotated[
        str,
        Field(
            description=f"The page to which the customer goes without paying. {_REDIRECT}",
            examples=["https://shop.example/basket"],
        ),
    ]
    metadata: Annotated[
        Metadata,
        Field(
            description="Your own key-value pairs, returned as submitted and sent to no wallet. "
            f"At most {METADATA_KEYS_MAX} keys; a string value has at most {METADATA_VALUE_MAX} "
            "characters.",
            examples=[{"order": "1234"}],
        ),
    ] = {}
    expires_in_seconds: Annotated[
        int,
        Field(
            ge=300,
            le=86_400,
            description="How long the session can be paid, in seconds. If absent, 86400.",
        ),
    ] = 86_400
    locale: Annotated[
        str,
        Field(
            description=f"The language of the customer's pages: {', '.join(LANGUAGES)}, or a "
            "variety such as `pt-BR`. If absent, the customer's browser decides. The returned "
            "session does not contain it.",
            examples=["pt-BR"],
            json_schema_extra=lambda schema: (
                schema.pop("default"),
                schema.update(maxLength=TAG_MAX),
            ),
        ),
        AfterValidator(_spoken),
    ] = ""
    client_reference_id: Annotated[
        str,
        Field(
            max_length=REFERENCE_MAX,
            description="Your own name for the purchase, such as an order number; returned as "
            "submitted, and shown to the customer as the order number.",
            examples=["order-1234"],
            json_schema_extra=_without_default,
        ),
    ] = ""
    collect: Annotated[
        CollectDetails | None,
        Field(
            description="Details that the page asks the customer for, before it asks for the "
            "wallet. They are stored encrypted. They are shown in the dashboard, its export, the "
            "receipt, and in `customer_details` when you read the session, but not in the response "
            "to this request.",
            json_schema_extra=_without_default,
        ),
    ] = None
    customer_email: Annotated[
        str,
        Field(
            max_length=EMAIL_MAX,
            description="The customer's e-mail address, if you know it. It is stored encrypted, "
            "shown in `customer_details`, and found by the dashboard's search. The page does not "
            "show it before the payment. If `collect` asks for the address, the customer may leave "
            "it out or give another one. No e-mail is sent to it unless the customer asks for the "
            "receipt.",
            examples=["ana@example.com"],
            json_schema_extra=_without_default,
        ),
        AfterValidator(_email),
    ] = ""

    def new_session(self) -> NewSession:
        """Convert this to the domain's new session. An absent optional text becomes None."""
        fields = type(self).model_fields
        same: dict[str, Any] = {
            name: None if value == "" and not fields[name].is_required() else value
            for name, value in vars(self).items()
            if name not in _OTHER_FORM
        }
        return NewSession(
            **same,
            line_items=tuple(item.line_item() for item in self.line_items),
            metadata_json=json.dumps(self.metadata, separators=(",", ":"), ensure_ascii=False),
            collect_json=self.collect.collect(email_known=bool(self.customer_email)).to_json()
            if self.collect
            else None,
        )


def whole_number(value: Any) -> Any:
    """Convert a value of ASCII digits in a query to a number. Return any other value unchanged."""
    return int(value) if re.fullmatch(r"-?[0-9]{1,15}", value) else value


def time_sentence(value: Any) -> str:
    """Return the error message for a value that is not a time in Unix seconds."""
    if isinstance(value, int) and value > UNIX_SECONDS_MAX:
        return "These are milliseconds. Send a time in Unix seconds, such as 1795781486."
    return TIME_FORM


def _unix_seconds(value: Any) -> Any:
    seconds = whole_number(value)
    if not isinstance(seconds, int) or not 0 <= seconds <= UNIX_SECONDS_MAX:
        raise PydanticCustomError("parameter_invalid_integer", time_sentence(seconds))
    return seconds


UnixSeconds = Annotated[int, Field(ge=0, le=UNIX_SECONDS_MAX), BeforeValidator(_unix_seconds)]


class ListSessions(Form):
    """The filters and the position of a list of sessions."""

    limit: Annotated[
        int,
        Field(ge=1, le=PAGE_MAX, description="The maximum number of sessions."),
        BeforeValidator(whole_number),
    ] = 10
    cursor: Annotated[str | None, Field(description="`next_cursor` of the previous page.")] = None
    status: Annotated[
        Status | None,
        Field(strict=False, description="Only sessions that have this status now."),
    ] = None
    created_gte: Annotated[
        UnixSeconds | None,
        Field(alias="created[gte]", description="Created at or after this time (Unix seconds)."),
    ] = None
    created_lt: Annotated[
        UnixSeconds | None,
        Field(alias="created[lt]", description="Created before this time (Unix seconds)."),
    ] = None

    def query(self) -> ListQuery:
        """Convert this to the flow's query."""
        return ListQuery(
            limit=self.limit,
            cursor=self.cursor,
            status=self.status,
            created_from=_time(self.created_gte),
            created_before=_time(self.created_lt),
        )


_BOUNDS: Final = ("created[gte]", "created[lt]")


def list_query(parameters: Sequence[tuple[str, str]]) -> ListQuery:
    """Convert the name-value pairs of a query string to a ListQuery. Raise as `validated` does."""
    given = once(parameters)
    for name in given:
        if name not in _BOUNDS and name.partition("[")[0] == "created":
            raise ParameterUnknown(
                "There is no such parameter. Use `created[gte]` and `created[lt]`.",
                param=name[:PARAM_MAX],
            )
    return validated(ListSessions, given).query()


def once(parameters: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the values by name. Raise ParameterInvalid for a name that is given twice."""
    named = dict(parameters)
    if len(named) != len(parameters):
        twice = next(name for name, _ in parameters if [n for n, _ in parameters].count(name) > 1)
        raise ParameterInvalid("This parameter is given twice.", param=twice[:PARAM_MAX])
    return named


def expands(request: Request) -> bool:
    """Return whether the query asks to expand the payment attempts.

    Raise ParameterInvalid if the query asks to expand any other field.
    """
    query = request.query_params
    wanted = [*query.getlist("expand"), *query.getlist("expand[]")]
    if any(each != EXPANDABLE for each in wanted):
        raise ParameterInvalid(f"Only `{EXPANDABLE}` can be expanded.", param="expand")
    return bool(wanted)


def refuse_query(request: Request, *known: str) -> None:
    """Raise ParameterUnknown if the query string has a parameter that is not in `known`."""
    for name in request.query_params:
        if name.removesuffix("[]") not in known:
            cure = no_parameter(name, known)
            if not known and request.method == "POST":
                cure += " Send parameters in the body."
            raise ParameterUnknown(cure, param=name[:PARAM_MAX])


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
