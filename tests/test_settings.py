from __future__ import annotations

import pytest

from checkout.domain.merchant.people import SignUp
from checkout.ports import CompletionPolicy
from checkout.settings import SettingsError, load

TEST_WALLETS = "https://test.example/test-wallets"
GOOD = {"DATABASE_URL": "dynamodb:///checkout", "BASE_URL": "https://pay.example/"}


def test_two_settings_are_enough() -> None:
    settings = load(GOOD)
    assert settings.base_url == "https://pay.example"
    assert settings.completion_policy is CompletionPolicy.RECEIVED
    assert not settings.allow_loopback_wallets


def test_the_providers_are_those_known_unless_others_or_none_are_set() -> None:
    (known,) = load(GOOD).wallet_providers
    assert known.name == "GateHub"
    own = ";".join(f"{name} | https://a.example/{{name}} | https://a.example/" for name in "AB")
    found = load(GOOD | {"WALLET_PROVIDERS": own}).wallet_providers
    assert [each.name for each in found] == ["A", "B"]
    assert load(GOOD | {"WALLET_PROVIDERS": "none"}).wallet_providers == ()


@pytest.mark.parametrize(
    ("name", "default", "values"),
    [
        ("BASE_URL", "https://pay.example", {"http://localhost:4000": "http://localhost:4000"}),
        ("CLIENT_LIMIT", 30, {"": 30, "0": 0}),
        ("RECEIPT_SENDER", "", {"a@shop.example": "a@shop.example"}),
        ("RETENTION_DAYS", 400, {"30": 30}),
        ("SIGN_UP", SignUp.CLOSED, {"": SignUp.CLOSED, "open": SignUp.OPEN}),
        ("TEST_WALLETS", "", {TEST_WALLETS: TEST_WALLETS}),
    ],
)
def test_a_setting_has_the_value_that_is_set_or_its_default(
    name: str, default: object, values: dict[str, object]
) -> None:
    assert getattr(load(GOOD), name.lower()) == default
    for value, found in values.items():
        assert getattr(load(GOOD | {name: value}), name.lower()) == found


def test_the_providers_of_a_test_stage_are_its_own_wallets_unless_others_are_set() -> None:
    own = TEST_WALLETS
    cedar, harbor = load(GOOD | {"TEST_WALLETS": own}).wallet_providers
    assert (cedar.name, cedar.form) == ("Cedar Bank", f"{own}/cedar/{{name: alice}}")
    assert (harbor.name, harbor.form) == ("Harbor Wallet", f"{own}/harbor/{{name: bob}}")
    assert cedar.website == harbor.website == own
    assert load(GOOD | {"TEST_WALLETS": own, "WALLET_PROVIDERS": "none"}).wallet_providers == ()


@pytest.mark.parametrize("name", ["DATABASE_URL", "BASE_URL"])
def test_a_missing_setting_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BASE_URL", "http://pay.example"),
        ("BASE_URL", "pay.example"),
        ("WALLET_PROVIDERS", "Somebody | http://somebody.example"),
        ("BASE_URL", "https://user@pay.example"),
        ("BASE_URL", "https://pay.example/?a=1"),
        ("COMPLETION_POLICY", "hoped"),
        ("TEST_WALLETS", "https://test.example/wallets"),
        ("SIGN_UP", "perhaps"),
        ("TEST_WALLETS", "ours/test-wallets"),
        ("ALLOW_LOOPBACK_WALLETS", "yes please"),
        ("RETENTION_DAYS", "29"),
        ("RETENTION_DAYS", "99999"),
        ("RETENTION_DAYS", "a year"),
        *(("CLIENT_LIMIT", each) for each in ("-1", "many", "1.5", "٣", "1000000")),
        ("RECEIPT_SENDER", "Shop <a@shop.example>"),
        ("RECEIPT_SENDER", "shop.example"),
        ("RECEIPT_SENDER", "a@b"),
        ("RECEIPT_SENDER", " a@shop.example"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_not_shown(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name) as refused:
        load({**GOOD, name: value})
    assert value not in str(refused.value)


@pytest.mark.parametrize(
    "development",
    [{"ALLOW_LOOPBACK_WALLETS": "true"}, {"EXTRA_CA_FILE": "/tmp/ca.pem"}],  # noqa: S108
)
def test_lambda_refuses_to_start_with_a_development_setting(development: dict[str, str]) -> None:
    assert load({**GOOD, **development})
    with pytest.raises(SettingsError, match="development"):
        load({**GOOD, **development, "AWS_LAMBDA_FUNCTION_NAME": "checkout-pay"})


def test_no_secret_shows_in_the_settings_text() -> None:
    settings = load({**GOOD, "ENCRYPTION_KEY": "11" * 32, "EDGE_SECRET": "22" * 32})
    assert "11" * 32 not in repr(settings)
    assert "22" * 32 not in repr(settings)
