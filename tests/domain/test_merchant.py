from __future__ import annotations

from checkout.domain.merchant import ApiKey
from tests.adapters.samples import a_merchant
from tests.support import a_session


def test_no_record_shows_its_secret_in_a_log() -> None:
    merchant = a_merchant(private_key="SEALED")
    session = a_session(grant="SEALED", token="SEALED", interact_url="https://SEALED")
    assert "SEALED" not in repr(merchant)
    assert "SEALED" not in repr(session)
    assert ApiKey.__dataclass_params__.frozen  # type: ignore[attr-defined]
