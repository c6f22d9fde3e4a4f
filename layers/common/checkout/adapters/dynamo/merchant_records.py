"""How merchants and API keys lie in their tables: dataclass to DynamoDB item and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from checkout.adapters.dynamo.values import (
    Item,
    Value,
    instant,
    instant_from,
    number,
    number_from,
    optional,
    present,
    read,
    text,
    text_from,
)
from checkout.domain.merchant import ApiKey, Logo, Merchant
from checkout.domain.webhooks import Endpoint, WebhookSecret


def merchant_item(merchant: Merchant) -> Item:
    return present(
        id=text(merchant.id),
        name=text(merchant.name),
        wallet_address=text(merchant.wallet_address),
        key_id=text(merchant.key_id),
        private_key=text(merchant.private_key),
        asset_code=text(merchant.asset_code),
        asset_scale=number(merchant.asset_scale),
        auth_server=text(merchant.auth_server),
        resource_server=text(merchant.resource_server),
        created_at=instant(merchant.created_at),
        version=number(merchant.version),
        endpoint=optional(_endpoint, merchant.endpoint),
        logo=optional(_logo, merchant.logo),
        accent_color=optional(text, merchant.accent_color),
        locale=optional(text, merchant.locale),
        return_hosts=hosts(merchant.return_hosts),
    )


def merchant_from(item: Mapping[str, Value]) -> Merchant:
    return Merchant(
        id=text_from(item["id"]),
        name=text_from(item["name"]),
        wallet_address=text_from(item["wallet_address"]),
        key_id=text_from(item["key_id"]),
        private_key=text_from(item["private_key"]),
        asset_code=text_from(item["asset_code"]),
        asset_scale=number_from(item["asset_scale"]),
        auth_server=text_from(item["auth_server"]),
        resource_server=text_from(item["resource_server"]),
        created_at=instant_from(item["created_at"]),
        version=number_from(item["version"]),
        endpoint=read(item, "endpoint", _endpoint_from),
        logo=read(item, "logo", _logo_from),
        accent_color=read(item, "accent_color", text_from),
        locale=read(item, "locale", text_from),
        return_hosts=_hosts_from(item["return_hosts"]),
    )


def key_item(key: ApiKey) -> Item:
    return present(
        id=text(key.id),
        hash=text(key.hash),
        merchant=text(key.merchant),
        name=text(key.name),
        last_four=text(key.last_four),
        asset_code=text(key.asset_code),
        asset_scale=number(key.asset_scale),
        created_at=instant(key.created_at),
        last_used_at=optional(instant, key.last_used_at),
        revoked_at=optional(instant, key.revoked_at),
        expires_at=optional(instant, key.expires_at),
        return_hosts=hosts(key.return_hosts),
    )


def key_from(item: Mapping[str, Value]) -> ApiKey:
    return ApiKey(
        id=text_from(item["id"]),
        hash=text_from(item["hash"]),
        merchant=text_from(item["merchant"]),
        name=text_from(item["name"]),
        last_four=text_from(item["last_four"]),
        asset_code=text_from(item["asset_code"]),
        asset_scale=number_from(item["asset_scale"]),
        created_at=instant_from(item["created_at"]),
        last_used_at=read(item, "last_used_at", instant_from),
        revoked_at=read(item, "revoked_at", instant_from),
        expires_at=read(item, "expires_at", instant_from),
        return_hosts=read(item, "return_hosts", _hosts_from) or (),
    )


def hosts(names: Sequence[str]) -> Value:
    return {"L": [text(name) for name in names]}


def _hosts_from(value: Value) -> tuple[str, ...]:
    return tuple(text_from(name) for name in value["L"])


def _endpoint(endpoint: Endpoint) -> Value:
    return {
        "M": present(
            url=text(endpoint.url),
            events={"L": [text(event) for event in endpoint.events]},
            secrets={"L": [_secret(secret) for secret in endpoint.secrets]},
            disabled_at=optional(instant, endpoint.disabled_at),
        )
    }


def _endpoint_from(value: Value) -> Endpoint:
    parts = value["M"]
    return Endpoint(
        url=text_from(parts["url"]),
        events=tuple(text_from(event) for event in parts["events"]["L"]),
        secrets=tuple(_secret_from(secret) for secret in parts["secrets"]["L"]),
        disabled_at=read(parts, "disabled_at", instant_from),
    )


def _secret(secret: WebhookSecret) -> Value:
    return {
        "M": present(
            sealed=text(secret.sealed),
            created_at=instant(secret.created_at),
            expires_at=optional(instant, secret.expires_at),
        )
    }


def _secret_from(value: Value) -> WebhookSecret:
    parts = value["M"]
    return WebhookSecret(
        sealed=text_from(parts["sealed"]),
        created_at=instant_from(parts["created_at"]),
        expires_at=read(parts, "expires_at", instant_from),
    )


def _logo(logo: Logo) -> Value:
    return {"M": {"media_type": text(logo.media_type), "data": {"B": logo.data}}}


def _logo_from(value: Value) -> Logo:
    parts = value["M"]
    return Logo(text_from(parts["media_type"]), bytes(parts["data"]["B"]))
