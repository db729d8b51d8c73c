"""The actors of each call (docs/ARCHITECTURE.md#actors): the protos name them for every method and say what is so.

Their effect is in tests/kit/test_actors.py.
"""

import importlib
import re
from collections.abc import Collection
from typing import Any, Final

import pytest

from cli import ids
from cli.commands import approvals, find, parked
from console.surfaces import DASHBOARD, DESK
from console.words import acts
from fiatgate.rpc.v1 import access_pb2
from kit.base.actors import MEMBER_ROLES, STAFF_ROLES
from kit.base.services import PACKAGES, SERVICES
from tests.support.contracts import BY_PROCESS, SHARED, modules_of, permissions_of, serves
from tests.test_architecture import ROOT


def method_of(service: str, method: str) -> Any:
    name, _, called = method.partition("/")
    modules = [
        module
        for each in (*PACKAGES.get(service, (service,)), *BY_PROCESS, *SHARED)
        for module in modules_of(each)
    ]
    (found,) = [
        each.DESCRIPTOR.services_by_name[name] for each in modules if name in each.DESCRIPTOR.services_by_name
    ]
    return found.methods_by_name[called]


@pytest.mark.parametrize("service", SERVICES)
def test_every_rpc_names_the_actors_that_may_call_it(service: str) -> None:
    """A method without an entry is closed to people and processes."""
    for method in permissions_of(service):
        entries = method_of(service, method).GetOptions().Extensions[access_pb2.access]
        chosen = [each for each in entries if service in each.services]
        others = [each for each in entries if not each.services]
        assert len(chosen or others) == 1, f"{method}: one entry of fiatgate.rpc.v1.access for {service}"


def test_the_console_explains_each_role() -> None:
    """Its forms for invitations and roles offer the roles in this order."""
    assert tuple(DESK.roles) == STAFF_ROLES
    assert tuple(DASHBOARD.roles) == MEMBER_ROLES


def test_an_approvable_call_is_listed_counted_and_read_as_a_sentence() -> None:
    """A request that `fiatgate approvals` does not list waits for ever."""
    served = {service for service in SERVICES if serves(service, "approvals")}
    assert set(approvals.SERVICES) == served
    for service in served:
        assert "approvals.gauges(" in (ROOT / f"services/{service}/workers.py").read_text(), service
        approvable = importlib.import_module(f"services.{service}.rpc").APPROVABLE
        deciding = permissions_of(service)["ApprovalsService/Approve"].staff
        assert deciding == {"admin", *(each.role for each in approvable.values())}, "approvals.proto"
        for act in approvable:
            assert act in acts.SENTENCES or act.partition(".")[2] in acts.PAST, (
                f"{act}: console/words/acts.py"
            )


@pytest.mark.parametrize(
    ("shared", "called"),
    [
        ("approvals", approvals.SERVICES),
        ("parked", parked.CONSUMING),
        ("find", {*find.SERVICES, *ids.SERVICES.values()}),
    ],
)
def test_the_command_line_calls_each_service_that_serves_a_shared_contract(
    shared: str, called: Collection[str]
) -> None:
    """One that is missing in a list of the command is never searched, checked or listed."""
    assert set(called) == {each for each in SERVICES if serves(each, shared)}


READS: Final = re.compile(
    r"(Get|List|Check|Find|FollowEvents$|NameMerchants$|CompleteId$|Authenticate$|Authorize$)"
)


@pytest.mark.parametrize("service", SERVICES)
def test_a_row_says_whether_its_method_changes_something(service: str) -> None:
    """A change needs an author; a read does not."""
    rows = {method: row for method, row in permissions_of(service).items() if not row.signing_in}
    assert {method for method, row in rows.items() if not row.changes} == {
        method for method in rows if READS.match(method.partition("/")[2])
    }


@pytest.mark.parametrize("service", SERVICES)
def test_a_members_call_names_the_merchant_in_a_field_of_its_request(service: str) -> None:
    """Else a member of one merchant would reach those of the others (tests/e2e/test_other_merchants.py tries each)."""
    for method, row in permissions_of(service).items():
        if row.members and row.merchant == access_pb2.MERCHANT_UNSPECIFIED:
            assert "merchant_id" in method_of(service, method).input_type.fields_by_name, method


NEED_A_STEP_UP: Final = {
    "catalog": {"SetCurrency", "SetPaymentMethod", "SetRate", "Approve"},
    "invoices": {"AddRequisite", "AddRequisites", "EnableRequisite", "SetLineRule", "Approve"},
    "bank": {"CreateConnector", "RevokeConnector", "UseLine"},
    "withdrawals": {
        "MakeCorrection",
        "RequestRefund",
        "SendRefund",
        "SetRefundAccount",
        "SetWithdrawalMethod",
        "CreateWithdrawal",
        "RequestWithdrawal",
        "AddAddress",
        "ProcessWithdrawal",
        "CompleteWithdrawal",
        "FailWithdrawal",
        "CancelWithdrawal",
        "Approve",
    },
    "webhooks": set[str](),
    "identity": {
        "ConfigureMerchant",
        "ConfigureOwnMerchant",
        "SetLateMoney",
        "CreateApiKey",
        "DeactivateApiKey",
        "InvitePerson",
        "RecoverPerson",
        "SetRoles",
        "DisablePerson",
        "EnablePerson",
        "EndSession",
        "RemovePasskey",
        "RemoveTotp",
        "Approve",
    },
}
"""Money, its terms, accounts and addresses, keys, people. identity checks the factors that a person adds itself."""


@pytest.mark.parametrize("service", SERVICES)
def test_money_and_people_need_a_fresh_proof(service: str) -> None:
    stepping_up = {
        method.partition("/")[2] for method, row in permissions_of(service).items() if row.steps_up
    }
    assert stepping_up == NEED_A_STEP_UP[service], "a session that was left open must not do this"
