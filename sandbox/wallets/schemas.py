"""Schemas of request bodies and queries, from the Open Payments OpenAPI files 1.3.

Each schema contains only the constraints that a request can violate.
"""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_URI: Final = {"type": "string", "format": "uri"}
_OBJECT: Final = {"type": "object"}
_RECEIVER: Final = {**_URI, "pattern": "^(https|http)://(.+)/incoming-payments/(.+)$"}
_METHOD: Final = {"type": "string", "enum": ["ilp"]}

AMOUNT: Final = {
    "type": "object",
    "required": ["value", "assetCode", "assetScale"],
    "properties": {
        "value": {"type": "string", "format": "uint64"},
        "assetCode": _TEXT,
        "assetScale": {"type": "integer", "minimum": 0, "maximum": 255},
    },
}


def _closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": required | (optional or {}),
        "additionalProperties": False,
    }


def _actions(*names: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "enum": list(names)}, "uniqueItems": True}


def _access(
    kind: str,
    actions: dict[str, Any],
    required: dict[str, Any] | None = None,
    optional: dict[str, Any] | None = None,
) -> dict[str, Any]:
    needed = {"type": {"type": "string", "enum": [kind]}, "actions": actions, **(required or {})}
    return {
        "type": "object",
        "required": list(needed),
        "properties": needed | (optional or {}),
        "unevaluatedProperties": False,
    }


INCOMING_PAYMENT: Final = _closed(
    {"walletAddress": _URI},
    {
        "incomingAmount": AMOUNT,
        "expiresAt": {"type": "string", "format": "date-time"},
        "metadata": _OBJECT,
    },
)

_QUOTE: Final = {"walletAddress": _URI, "receiver": _RECEIVER, "method": _METHOD}
QUOTE: Final = {
    "oneOf": [
        _closed(_QUOTE),
        _closed(_QUOTE | {"receiveAmount": AMOUNT}),
        _closed(_QUOTE | {"debitAmount": AMOUNT}),
    ]
}

OUTGOING_PAYMENT: Final = {
    "oneOf": [
        _closed({"quoteId": _URI, "walletAddress": _URI}, {"metadata": _OBJECT}),
        _closed(
            {"incomingPayment": _URI, "debitAmount": AMOUNT, "walletAddress": _URI},
            {"metadata": _OBJECT},
        ),
    ]
}

_LIMITS: Final = {
    "type": "object",
    "properties": {
        "receiver": _RECEIVER,
        "interval": _TEXT,
        "debitAmount": AMOUNT,
        "receiveAmount": AMOUNT,
    },
    "additionalProperties": False,
}

_INCOMING_ACCESS: Final = _access(
    "incoming-payment",
    _actions("create", "complete", "read", "read-all", "list", "list-all"),
    optional={"identifier": _URI},
)
_OUTGOING_ACCESS: Final = _access(
    "outgoing-payment",
    _actions("create", "read", "read-all", "list", "list-all"),
    {"identifier": _URI},
    {"limits": _LIMITS},
)
_QUOTE_ACCESS: Final = _access("quote", _actions("create", "read", "read-all"))

JWK: Final = {
    "type": "object",
    "required": ["kid", "alg", "kty", "crv", "x"],
    "properties": {
        "kid": _TEXT,
        "alg": {"type": "string", "enum": ["EdDSA"]},
        "use": {"type": "string", "enum": ["sig"]},
        "kty": {"type": "string", "enum": ["OKP"]},
        "crv": {"type": "string", "enum": ["Ed25519"]},
        "x": {"type": "string", "pattern": "^[a-zA-Z0-9-_]+$"},
    },
}

_CLIENT: Final = {"oneOf": [_closed({"walletAddress": _URI}), _closed({"jwk": JWK}), _URI]}

_INTERACT: Final = {
    "type": "object",
    "required": ["start"],
    "properties": {
        "start": {"type": "array", "items": {"type": "string", "enum": ["redirect"]}},
        "finish": {
            "type": "object",
            "required": ["method", "uri", "nonce"],
            "properties": {
                "method": {"type": "string", "enum": ["redirect"]},
                "uri": _URI,
                "nonce": _TEXT,
            },
        },
    },
}

GRANT: Final = {
    "type": "object",
    "required": ["client", "access_token"],
    "properties": {
        "client": _CLIENT,
        "interact": _INTERACT,
        "access_token": {
            "type": "object",
            "required": ["access"],
            "properties": {
                "access": {
                    "type": "array",
                    "items": {"oneOf": [_INCOMING_ACCESS, _OUTGOING_ACCESS, _QUOTE_ACCESS]},
                    "uniqueItems": True,
                    "maxItems": 3,
                }
            },
        },
    },
}

CONTINUE: Final = {"type": "object", "properties": {"interact_ref": _TEXT}}
