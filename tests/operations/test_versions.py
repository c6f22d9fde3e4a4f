"""A release is undone for all functions together, and the next deployment notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from operations import versions
from operations.stages import Refused
from tests.operations.accounts import NAMES, Released, a_stage, code


@pytest.fixture
def account() -> Iterator[Released]:
    with mock_aws():
        yield Released()


def test_an_undo_moves_every_function_back_to_the_release_before(account: Released) -> None:
    account.release("1", *NAMES)
    account.release("2", "checkout-api")
    account.release("3", *NAMES)
    assert account.live() == ["3", "2"]
    versions.undo(account, a_stage())
    assert account.live() == ["2", "1"]
    with pytest.raises(Refused, match="nothing to undo"):
        versions.undo(account, a_stage())


def test_an_undo_that_was_interrupted_is_finished_by_the_next(account: Released) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    account.point("checkout-api", "1")
    versions.undo(account, a_stage())
    assert account.live() == ["1", "1"]


def test_a_deployment_knows_of_aliases_that_are_not_where_the_stack_has_put_them(
    account: Released,
) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    assert versions.moved(account, "checkout") == {}
    versions.undo(account, a_stage())
    assert versions.moved(account, "checkout") == dict.fromkeys(NAMES, "1")
    account.release("3", *NAMES)
    assert versions.moved(account, "checkout") == {}
    versions.undo(account, a_stage())
    assert account.live() == ["1", "1"]  # not what was undone


def test_a_deployment_that_failed_or_changed_nothing_is_not_the_last_release(
    account: Released,
) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    account.release("nothing")
    with pytest.raises(Refused), versions.remembered(account, "checkout"):
        raise Refused("The deployment failed.")
    versions.undo(account, a_stage())
    assert account.live() == ["1", "1"]


def test_a_deployment_of_which_this_process_did_not_see_the_end_can_be_undone(
    account: Released,
) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    with pytest.raises(KeyboardInterrupt), versions.remembered(account, "checkout"):
        raise KeyboardInterrupt
    for name in NAMES:  # CloudFormation goes on
        account.functions.update_function_code(FunctionName=name, ZipFile=code("3"))
        version = account.functions.publish_version(FunctionName=name)["Version"]
        account.point(name, version)
    versions.undo(account, a_stage())
    assert account.live() == ["2", "2"]


def test_nothing_is_undone_during_an_update_or_without_a_second_release(account: Released) -> None:
    account.release("1", *NAMES)
    with pytest.raises(Refused, match="nothing to undo"):
        versions.undo(account, a_stage())
    account.status = "UPDATE_IN_PROGRESS"
    with pytest.raises(Refused, match="cancel-update-stack --stack-name checkout"):
        versions.undo(account, a_stage())


def test_old_versions_are_deleted_and_the_last_five_and_those_in_use_are_not(
    account: Released,
) -> None:
    for number in range(1, 8):
        account.release(str(number), "checkout-api")
    account.point("checkout-api", "1")
    versions.prune(account, "checkout")
    listed = account.functions.list_versions_by_function(FunctionName="checkout-api")["Versions"]
    assert [each["Version"] for each in listed] == ["$LATEST", "1", "3", "4", "5", "6", "7"]
