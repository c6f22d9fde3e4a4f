"""Settings from the environment, read once and checked.

No other module reads the environment. Incomplete or contradictory settings are refused. Inside
Lambda, development settings are refused, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from checkout.domain.ground import providers
from checkout.domain.ground.grammar import TEST_WALLETS, email_of
from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.people import SignUp
from checkout.domain.session.retention import RETENTION, RETENTION_LEAST
from checkout.ports import CompletionPolicy
from open_payments.urls import is_loopback, is_sent, target


class SettingsError(Exception):
    """A setting is missing or wrong. The message names the setting and never shows its value."""


def _setting(text: str, **options: Any) -> Any:
    return field(metadata={"text": text}, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. Each field has the name of its environment variable, in lower case.

    The documentation shows each field's `text`.
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
        "in place of ENCRYPTION_KEY: the Secrets Manager secret that contains it", default=""
    )
    details_kms_key: str = _setting(
        "the KMS key under which the API can read the details of customers (its ARN); empty: the "
        "API shows none",
        default="",
    )
    completion_policy: CompletionPolicy = _setting(
        "`received` (money seen at the merchant) or `instructed` (the wallet accepted the payment)",
        default=CompletionPolicy.RECEIVED,
    )
    events_queue_url: str = _setting(
        "SQS queue for new webhook events; empty: they wait for the scheduled job",
        default="",
    )
    tasks_queue_url: str = _setting(
        "SQS queue for wallet clean-up after a session ends; empty: grants expire on their own",
        default="",
    )
    wallet_providers: tuple[Provider, ...] = _setting(
        "providers that the hosted page offers, separated by `;`: `name \\| "
        "https://wallet.example/{name} \\| website \\| countries \\| logo in base64`, of which the "
        "last two may be left out; instead of `{name}` there may be one or two fields such as "
        "`{Wallet number: 123456789}/{Currency: USD}`, with the provider's word and an example; "
        "empty: those known at the release, or a test stage's own; `none`: none",
        default=(),
    )
    test_wallets: str = _setting(
        "only for a test stage: the address below which its wallets are, such as "
        "`https://test.example/test-wallets`. A test stage accepts only these wallets, and all "
        "other stages refuse them",
        default="",
    )
    sign_up: SignUp = _setting(
        "who may sign up with a shop of their own in the browser: `closed` (nobody), `invitation` "
        "(those with a link from `checkout invite --new-shop`) or `open`",
        default=SignUp.CLOSED,
    )
    receipt_sender: str = _setting(
        "e-mail address from which customers can have their receipt sent and members get notices "
        "(Amazon SES); empty: no e-mail",
        default="",
    )
    client_limit: int = _setting(
        "the number of wallet submissions, returns from wallets and payment checks that one "
        "client address may cause in a minute; 0: no limits by client address",
        default=30,
    )
    edge_secret: str = _setting(
        "the secret that a CDN in front of the service sends as Edge-Secret. If set, requests "
        "without it are refused, and the client address is taken from X-Forwarded-For. While it is "
        "being replaced: the new secret, a comma and the old one",
        default="",
        repr=False,
    )
    retention_days: int = _setting(
        "days for which ended sessions and the audit log are kept, at least 30",
        default=RETENTION.days,
    )
    allow_loopback_wallets: bool = _setting(
        "development only: wallets on this machine are allowed", default=False
    )
    extra_ca_file: str = _setting(
        "development only: certificate authorities to trust besides the system's (PEM)", default=""
    )


def load(environment: Mapping[str, str]) -> Settings:
    """Return the settings of `environment`. Raise SettingsError."""
    test_wallets = _test_wallets(environment.get("TEST_WALLETS", ""))
    settings = Settings(
        database_url=_required(environment, "DATABASE_URL"),
        base_url=_base_url(_required(environment, "BASE_URL")),
        encryption_key=environment.get("ENCRYPTION_KEY", ""),
        encryption_key_secret=environment.get("ENCRYPTION_KEY_SECRET", ""),
        details_kms_key=environment.get("DETAILS_KMS_KEY", ""),
        completion_policy=_policy(environment.get("COMPLETION_POLICY", "received")),
        events_queue_url=environment.get("EVENTS_QUEUE_URL", ""),
        tasks_queue_url=environment.get("TASKS_QUEUE_URL", ""),
        wallet_providers=_providers(environment.get("WALLET_PROVIDERS", ""), test_wallets),
        test_wallets=test_wallets,
        sign_up=_sign_up(environment.get("SIGN_UP", "") or "closed"),
        receipt_sender=_sender(environment.get("RECEIPT_SENDER", "")),
        client_limit=_whole(environment, "CLIENT_LIMIT", 30, most=999_999),
        edge_secret=environment.get("EDGE_SECRET", ""),
        retention_days=_whole(
            environment,
            "RETENTION_DAYS",
            RETENTION.days,
            least=RETENTION_LEAST.days,
            most=36_500,
        ),
        allow_loopback_wallets=_flag(environment, "ALLOW_LOOPBACK_WALLETS"),
        extra_ca_file=environment.get("EXTRA_CA_FILE", ""),
    )
    development = settings.allow_loopback_wallets or settings.extra_ca_file
    if development and in_lambda(environment):
        raise SettingsError(
            "ALLOW_LOOPBACK_WALLETS and EXTRA_CA_FILE are for development only and must not be set "
            "in Lambda."
        )
    return settings


def in_lambda(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in Lambda."""
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


def _providers(value: str, test_wallets: str) -> tuple[Provider, ...]:
    known = providers.of_test_stage(test_wallets) if test_wallets else providers.KNOWN
    try:
        return () if value.strip() == "none" else providers.parse(value.strip() or known)
    except ValueError:
        raise SettingsError(
            "WALLET_PROVIDERS must be name | https://wallet.example/{name} | website | countries, "
            "separated by semicolons, empty, or none."
        ) from None


def _test_wallets(value: str) -> str:
    if value and not (is_sent(value) and value.endswith(TEST_WALLETS)):
        raise SettingsError(f"TEST_WALLETS must be an address that ends in {TEST_WALLETS}.")
    return value


def _sign_up(value: str) -> SignUp:
    try:
        return SignUp(value)
    except ValueError:
        raise SettingsError("SIGN_UP must be closed, invitation or open.") from None


def _sender(value: str) -> str:
    if value and email_of(value) != value:
        raise SettingsError("RECEIPT_SENDER must be an e-mail address, or empty.")
    return value


def _whole(
    environment: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int
) -> int:
    value = environment.get(name, "") or str(default)
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise SettingsError(f"{name} must be a whole number.")
    if not least <= int(value) <= most:
        raise SettingsError(f"{name} must be {least} to {most}.")
    return int(value)


def _flag(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "false").lower()
    if value not in ("true", "false", ""):
        raise SettingsError(f"{name} must be true or false.")
    return value == "true"
