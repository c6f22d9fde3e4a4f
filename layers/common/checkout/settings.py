"""The environment, read once and checked: every setting of the product is a field here, and nothing
else reads the environment.

Refuses to load what is incomplete or contradicts itself, and the development settings inside
Lambda.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from checkout.open_payments.urls import is_loopback, target
from checkout.ports.wallets import CompletionPolicy


class SettingsError(Exception):
    """A setting is missing or wrong; the message names it and never shows its value."""


def _setting(text: str, **options: Any) -> Any:
    return field(metadata={"text": text}, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One field an environment variable, of the same name in upper case; `text` is what the
    documentation shows.
    """

    database_url: str = _setting(
        "where the data is: `dynamodb:///PREFIX` (AWS) or `dynamodb+http://HOST:PORT/PREFIX`"
    )
    base_url: str = _setting("public base address of the service")
    encryption_key: str = _setting(
        "64 hexadecimal characters from which the data key is derived; while it is rotated, the "
        "new key, a comma and the old one",
        default="",
        repr=False,
    )
    encryption_key_secret: str = _setting(
        "in place of ENCRYPTION_KEY: the Secrets Manager secret that holds it", default=""
    )
    completion_policy: CompletionPolicy = _setting(
        "`received` (money seen at the merchant) or `instructed` (the wallet's word)",
        default=CompletionPolicy.RECEIVED,
    )
    events_queue_url: str = _setting(
        "queue that is told of new webhook events; empty: they wait for the scheduled job",
        default="",
    )
    tasks_queue_url: str = _setting(
        "queue of what is done at wallets after the answer; empty: it is left to run out there",
        default="",
    )
    allow_loopback_wallets: bool = _setting(
        "development only: wallets on this machine are allowed", default=False
    )
    extra_ca_file: str = _setting(
        "development only: certificate authorities to trust besides the system's (PEM)", default=""
    )


def load(environment: Mapping[str, str]) -> Settings:
    """The settings of `environment`. Raises SettingsError."""
    settings = Settings(
        database_url=_required(environment, "DATABASE_URL"),
        base_url=_base_url(_required(environment, "BASE_URL")),
        encryption_key=environment.get("ENCRYPTION_KEY", ""),
        encryption_key_secret=environment.get("ENCRYPTION_KEY_SECRET", ""),
        completion_policy=_policy(environment.get("COMPLETION_POLICY", "received")),
        events_queue_url=environment.get("EVENTS_QUEUE_URL", ""),
        tasks_queue_url=environment.get("TASKS_QUEUE_URL", ""),
        allow_loopback_wallets=_flag(environment, "ALLOW_LOOPBACK_WALLETS"),
        extra_ca_file=environment.get("EXTRA_CA_FILE", ""),
    )
    development = settings.allow_loopback_wallets or settings.extra_ca_file
    if development and in_lambda(environment):
        raise SettingsError(
            "ALLOW_LOOPBACK_WALLETS and EXTRA_CA_FILE are for development: not to be set in Lambda."
        )
    return settings


def in_lambda(environment: Mapping[str, str]) -> bool:
    """Whether this process is one of Lambda's."""
    return "AWS_LAMBDA_FUNCTION_NAME" in environment


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise SettingsError(f"{name} is not set.")
    return value


def _base_url(value: str) -> str:
    try:
        found = target(value)
    except ValueError:
        found = None
    if found is None or found.query:
        raise SettingsError(
            "BASE_URL must be an absolute address without query, fragment and user name."
        )
    if found.scheme != "https" and not is_loopback(found.host):
        raise SettingsError("BASE_URL must be https (http only for localhost).")
    return value.rstrip("/")


def _policy(value: str) -> CompletionPolicy:
    try:
        return CompletionPolicy(value)
    except ValueError:
        raise SettingsError("COMPLETION_POLICY must be received or instructed.") from None


def _flag(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "false").lower()
    if value not in ("true", "false", ""):
        raise SettingsError(f"{name} must be true or false.")
    return value == "true"
