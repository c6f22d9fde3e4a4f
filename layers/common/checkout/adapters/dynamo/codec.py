"""Convert frozen dataclasses to DynamoDB items and back, by the types of their fields.

`Codec(kind)` reads the annotations once, at import, so a new field needs no change here. Each field
becomes an attribute with the field's name:

    str, StrEnum      S               tuple[X, ...]   L
    int               N               a dataclass     M
    datetime          N, epoch ms     X | None        no attribute for None
    bytes             B

DynamoDB charges a write by the size of the whole item, including the names of its attributes, and
allows at most 400 KB. So fields that neither conditions nor indexes need are compressed:

    deflated   a text, compressed (B)
    groups     several fields as one JSON object by their names, compressed (B). A dataclass in it
               is a row: a list of its values in the order of the fields. A row can lack the values
               of the final fields, if these fields have defaults. A field that is None is left out.
               One field of a group can keep the JSON members that only a later release defines, so
               that they are not lost when this release writes the record again

In JSON, times are epoch milliseconds.

Compression uses a dictionary of frequent parts: field names, events, addresses. The first byte of a
compressed text is the number of its dictionary. A dictionary never changes, because reading a
record needs the dictionary with which the record was written. A better dictionary gets the next
number.

Values have the types of DynamoDB's low-level client. No value is a float.
"""

from __future__ import annotations

import json
import zlib
from binascii import a2b_base64
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from operator import itemgetter
from types import NoneType
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from checkout.domain.ground.json_values import compact

Value = dict[str, Any]  # {"S": "text"}, {"N": "1"}, {"M": {…}}, {"L": […]}
Item = dict[str, Value]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_PARSED_BY_US = "before-parse.dynamodb"
_REFUSED = 300  # from this HTTP status on, botocore raises an exception for the answer


def milliseconds(at: datetime) -> int:
    """Return epoch milliseconds, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def moment(value: int) -> datetime:
    return _EPOCH + value * _MILLISECOND


def text(value: str) -> Value:
    # `str.__str__` returns the plain text of an enum's member, and raises TypeError for a value
    # that is not text.
    return {"S": str.__str__(value)}


def number(value: int) -> Value:
    return {"N": str(value)}


def instant(value: datetime) -> Value:
    return number(milliseconds(value))


def texts(values: Iterable[str]) -> Value:
    return {"L": [text(value) for value in values]}


def text_from(value: Value) -> str:
    result: str = value["S"]
    return result


def number_from(value: Value) -> int:
    return int(value["N"])


def instant_from(value: Value) -> datetime:
    return moment(number_from(value))


def read_as_sent(client: Any) -> None:
    """Make `client` of DynamoDB return answers in the form in which DynamoDB sends them.

    botocore's parser looks up the model of each attribute. This takes 10 µs for each attribute,
    which is most of the time that a list needs. The parser is not needed: an answer already has the
    form that the parser would return, except that bytes are base64. botocore still parses errors.
    """
    client.meta.events.register(_PARSED_BY_US, _read)


def _read(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Parse an answer before botocore does (its event `before-parse`).

    botocore adds the values in the second argument to the answer that it returns.
    """
    if response_dict["status_code"] < _REFUSED and response_dict["body"]:
        customized_response_dict |= json.loads(response_dict["body"], object_hook=_decoded)
        response_dict["body"] = b""  # leave nothing for the parser


def _decoded(found: dict[str, Any]) -> dict[str, Any]:
    """Return an object in the answer with its bytes decoded.

    A text stands for bytes only in a value of the type B.
    """
    if "B" in found and isinstance(found["B"], str):
        found["B"] = a2b_base64(found["B"])
    return found


_RAW: Final = -15  # zlib's largest window, without zlib's header and checksum
_LEVEL: Final = 6

# Dictionary 1: pieces of typical stored texts, the most frequent last, as zlib recommends.
_1: Final = (
    b'{"id":"evt_","object":"event","api_version":"2026-10-28.endive","created":17,"data":{"obje'
    b'ct":{"id":"cs_","object":"checkout.session","adaptive_pricing":null,"after_expiration":nul'
    b'l,"allow_promotion_codes":null,"allowed_payment_method_types":null,"billing_address_collec'
    b'tion":null,"branding_settings":null,"client_secret":null,"collected_information":null,"con'
    b'sent":null,"consent_collection":null,"currency_conversion":null,"customer":null,"customer_'
    b'account":null,"customer_creation":null,"excluded_payment_method_types":null,"integration_i'
    b'dentifier":null,"invoice":null,"invoice_creation":null,"managed_payments":null,"name_colle'
    b'ction":null,"optional_items":null,"origin_context":null,"payment_link":null,"payment_metho'
    b'd_configuration_details":null,"payment_method_options":null,"permissions":null,"phone_numb'
    b'er_collection":null,"presentment_details":null,"recovered_from":null,"redirect_on_completi'
    b'on":null,"return_url":null,"saved_payment_method_options":null,"setup_intent":null,"shippi'
    b'ng_address_collection":null,"shipping_cost":null,"shipping_details":null,"subscription":nu'
    b'll,"tax_id_collection":null,"wallet_options":null,"amount_subtotal":2000,"amount_total":20'
    b'00,"automatic_tax":{"enabled":false,"liability":null,"provider":null,"status":null},"cance'
    b'l_url":"https://","client_reference_id":null,"created":17,"currency":"usd","custom_fields"'
    b':[],"custom_text":{"after_submit":null,"shipping_address":null,"submit":null,"terms_of_ser'
    b'vice_acceptance":null},"customer_details":{"email":null,"address":null,"name":null,"phone"'
    b':null,"tax_exempt":"none","tax_ids":[]},"customer_email":null,"discounts":[],"expires_at":'
    b'17,"livemode":false,"locale":null,"metadata":{},"mode":"payment","open_payments":{"status"'
    b':"completed","customer_wallet":"https://","incoming_payment":"https:///incoming-payments/"'
    b',"outgoing_payment":"https:///outgoing-payments/","amount_received":2000,"customer_debit":'
    b'{"value":"1854","asset_code":"EUR","asset_scale":2}},"payment_intent":"pi_","payment_metho'
    b'd_collection":"if_required","payment_method_types":["open_payments"],"payment_status":"pai'
    b'd","shipping_options":[],"status":"complete","submit_type":null,"success_url":"https://","'
    b'total_details":{"amount_discount":0,"amount_shipping":0,"amount_tax":0},"ui_mode":"hosted"'
    b',"url":null}},"livemode":false,"pending_webhooks":1,"request":{"id":null,"idempotency_key"'
    b':null},"type":"checkout.session.completed"}'
    b'{"id":"cs_","object":"checkout.session","status":"open","url":"https://","amount_total":20'
    b'00,"currency":"usd","mode":"payment","line_items":[{"price_data":{"currency":"usd","produc'
    b't_data":{"name":"Tea"},"unit_amount":1000},"quantity":2}],"metadata":{},"success_url":"htt'
    b'ps://","cancel_url":"https://","customer_wallet":null,"incoming_payment":null,"outgoing_pa'
    b'yment":null,"expires_at":"2026-","created_at":"2026-","completed_at":null,"amount_received'
    b'":null,"client_reference_id":null,"customer_debit":null}'
    b'{"id":"cs_","status":"completed","amount_total":2000,"currency":"usd","metadata":{},"outgo'
    b'ing_payment":"https:///outgoing-payments/","customer_wallet":"https://"}'
    b'{"created_at":17,"amount_total":2000,"currency":"usd","receive":[2000,"USD",2],"line_items'
    b'":[["usd","",null,1000,2]],"metadata_json":"{}","success_url":"https://shop.example/thanks'
    b'?session_id=cs_","cancel_url":"https://shop.example/basket","locale":"en","client_referenc'
    b'e_id":"order-","echo_json":"{}"}'
    b'"interact_url":"https://","closed_at":17,"problem":"approval_unusable","payment_refused","'
    b'payment_failed","wallet_unavailable","completed_at":17,"event":"evt_","submissions":[17],"'
    b'customer":["https://wallet.","EUR",2,"https://auth.","https://",null],"incoming_payment":['
    b'"https://.interledger.org/incoming-payments/",17],"quote":["https:///quotes/",[17,"EUR",2]'
    b',[17,"USD",2],17],"outgoing_payment":"https:///outgoing-payments/","history":[[17,"created'
    b'",null],[17,"checked",null],[17,"canceled",null],[17,"cancel_requested",null],[17,"expire_'
    b'requested",null],[17,"expiry_passed",null],[17,"closing_started",null],[17,"closed",null],'
    b'[17,"payment_disproved",null],[17,"money_found",null],[17,"accepted_as_paid",null],[17,"gi'
    b'ven_up",null],[17,"late_payment",null],[17,"erased",null],[17,"preparation_failed",null],['
    b'17,"approval_lost",null],[17,"payment_refused",null],[17,"wallet_submitted",null],[17,"ref'
    b'erence_stored",null],[17,"prepared",null],[17,"approval_claimed",null],[17,"payment_intend'
    b'ed",null],[17,"payment_created",null],[17,"reconciled",null]]'
)

DICTIONARIES: Final = {1: _1}
LATEST: Final = 1


def deflated(plain: str) -> Value:
    """Compress a text into a binary attribute."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, zdict=DICTIONARIES[LATEST])
    return {"B": bytes([LATEST]) + packer.compress(plain.encode()) + packer.flush()}


def inflated(value: Value) -> str:
    """Return the text of a compressed attribute. Raise KeyError or ValueError if it is damaged."""
    stored = memoryview(value["B"])
    unpacker = zlib.decompressobj(_RAW, zdict=DICTIONARIES[stored[0]])
    try:
        plain = unpacker.decompress(stored[1:])
    except zlib.error as error:
        raise ValueError("a compressed text is damaged") from error
    if not unpacker.eof:
        raise ValueError("a compressed text is cut off")
    return plain.decode()


T = TypeVar("T")
Encode = Callable[[Any], Value]
Decode = Callable[[Value], Any]
Convert = Callable[[Any], Any]

_PLAIN: Final[dict[Any, tuple[Encode, Decode]]] = {
    str: (text, itemgetter("S")),
    int: (number, number_from),
    datetime: (instant, instant_from),
    bytes: (lambda value: {"B": value}, lambda value: bytes(value["B"])),
}
_DEFLATED: Final[tuple[Encode, Decode]] = (deflated, inflated)


class Codec(Generic[T]):
    """Encodes and decodes records of the dataclass `kind`.

    `names` maps fields to attributes with another name, and `groups` maps attributes to the fields
    in them. `later` is a field in a group, for the JSON text of the members that this release does
    not know. Attributes that belong to no field are ignored.
    """

    def __init__(
        self,
        kind: type[T],
        *,
        names: Mapping[str, str] | None = None,
        deflated: Collection[str] = (),
        groups: Mapping[str, Collection[str]] | None = None,
        later: str | None = None,
    ) -> None:
        renamed, groups, columns = names or {}, groups or {}, _columns(kind)
        grouped = {name for members in groups.values() for name in members}
        self._kind = kind
        self._absent = {
            name: None for name, (hint, required) in columns.items() if required and _optional(hint)
        }
        self._groups = {
            attribute: _Group({name: columns[name][0] for name in members}, later)
            for attribute, members in groups.items()
        }
        self._own = {
            renamed.get(name, name): (name, *(_DEFLATED if name in deflated else _pair(hint)))
            for name, (hint, _) in columns.items()
            if name not in grouped
        }

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the names of all attributes that a record can have."""
        return (*self._own, *self._groups)

    def encode(self, record: T, groups: Collection[str] | None = None) -> Item:
        """Return the attributes of `record`, with only the given `groups`, or with all groups."""
        item = {
            attribute: encode(value)
            for attribute, (name, encode, _) in self._own.items()
            if (value := getattr(record, name)) is not None
        }
        for attribute in self._groups if groups is None else groups:
            item[attribute] = self.encode_group(attribute, record)
        return item

    def encode_group(self, attribute: str, record: T) -> Value:
        """Return the attribute of a group of fields."""
        return self._groups[attribute].encode(record)

    def changed_groups(self, before: T, after: T) -> list[str]:
        """Return the names of the groups in which the two records differ."""
        return [
            attribute
            for attribute, group in self._groups.items()
            if any(getattr(before, name) != getattr(after, name) for name in group.members)
        ]

    def decode(self, item: Mapping[str, Value]) -> T:
        """Return the record in `item`. A field without an attribute has its default, or is None.

        Raises TypeError if a required attribute is missing, and KeyError, TypeError or ValueError
        if an attribute is damaged.
        """
        found: dict[str, Any] = {**self._absent}
        for attribute, value in item.items():
            if column := self._own.get(attribute):
                name, _, decode = column
                found[name] = decode(value)
            elif group := self._groups.get(attribute):
                found |= group.decode(value)
        return self._kind(**found)


class _Group:
    """Encodes and decodes the fields that share an attribute."""

    def __init__(self, hints: Mapping[str, Any], later: str | None) -> None:
        self.members = {name: _json(hint) for name, hint in hints.items()}
        self._later = later if later in hints else None

    def encode(self, record: Any) -> Value:
        found = {
            name: to(value)
            for name, (to, _) in self.members.items()
            if (value := getattr(record, name)) is not None
        }
        if self._later in found:
            found = json.loads(found.pop(self._later)) | found
        return deflated(compact(found))

    def decode(self, value: Value) -> dict[str, Any]:
        found, later = {}, {}
        for name, each in json.loads(inflated(value)).items():
            if member := self.members.get(name):
                found[name] = member[1](each)
            else:  # written by a later release
                later[name] = each
        if later and self._later is not None:
            found[self._later] = compact(later)
        return found


def _columns(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return, for each field, its type and whether the field has no default."""
    hints = get_type_hints(kind)
    return {each.name: (hints[each.name], each.default is MISSING) for each in fields(kind)}


def _optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


def _given(hint: Any) -> Any:
    """Return X for the type `X | None`, and any other type unchanged."""
    return get_args(hint)[0] if _optional(hint) else hint


def _pair(hint: Any) -> tuple[Encode, Decode]:
    """Return the functions that convert a value of this type to an attribute and back."""
    hint = _given(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is tuple:
        to, back = _pair(get_args(hint)[0])
        return (
            lambda values: {"L": [to(each) for each in values]},
            lambda value: tuple([back(each) for each in value["L"]]),
        )
    if is_dataclass(hint):
        return _map(hint)
    if issubclass(hint, StrEnum):
        return text, lambda value: hint(value["S"])
    raise TypeError(f"no encoding for {hint}")


def _map(kind: Any) -> tuple[Encode, Decode]:
    codec: Codec[Any] = Codec(kind)
    return lambda record: {"M": codec.encode(record)}, lambda value: codec.decode(value["M"])


def _json(hint: Any) -> tuple[Convert, Convert]:
    """Return the functions that convert a value of this type to JSON and back."""
    hint = _given(hint)
    if hint in (str, int):
        return _itself, _itself
    if hint is datetime:
        return milliseconds, moment
    if get_origin(hint) is tuple:
        to, back = _json(get_args(hint)[0])
        return lambda values: [*map(to, values)], lambda values: (*map(back, values),)
    if is_dataclass(hint):
        return _row(hint)
    if issubclass(hint, StrEnum):
        return str, hint
    raise TypeError(f"no encoding for {hint}")


def _itself(value: Any) -> Any:
    return value


def _row(kind: Any) -> tuple[Convert, Convert]:
    """Return the functions that convert a dataclass to a list of its values and back."""
    columns = _columns(kind)
    pairs = [(name, *_json(hint)) for name, (hint, _) in columns.items()]
    least = sum(required for _, required in columns.values())

    def pack(record: Any) -> list[Any]:
        row = [
            None if (value := getattr(record, name)) is None else to(value) for name, to, _ in pairs
        ]
        while len(row) > least and row[-1] is None:
            del row[-1]
        return row

    converted = [(place, back) for place, (_, _, back) in enumerate(pairs) if back is not _itself]

    def unpack(row: list[Any]) -> Any:  # a later release can store more values
        values = row[: len(pairs)]
        for place, back in converted:
            if place < len(values) and values[place] is not None:
                values[place] = back(values[place])
        return kind(*values)

    return pack, unpack
