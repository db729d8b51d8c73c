"""Each bound is declared once; where two places can't share a constant, these tests hold them equal."""

import ast
import re
from datetime import timedelta

import pytest

from cli.commands import merchants as merchants_cli
from console import strangers
from console.prices import methods
from console.words.refunds import ACCOUNT_WAITS
from fiatgate.catalog.v1 import catalog_pb2
from gateway.walls.calls import CALL_SECONDS, KINDS, WAIT_SECONDS
from kit.base import account_forms
from kit.rpc import values
from kit.rpc.errors import Refused
from kit.rpc.find import FOUND_MOST_ROWS
from kit.web.exchange import REQUEST_SECONDS
from services.catalog import domain as catalog
from services.identity import rpc as identity
from services.identity.operations.fields import parse_method_codes
from services.identity.operations.merchants import MERCHANTS_PER_PAGE
from services.webhooks.operations.reading import FOLLOWED_MOST
from services.withdrawals import domain as withdrawals
from tests.support.contracts import permissions_of
from tests.test_architecture import ROOT, sources
from tools.protolint import PROTOS, compile_protos

MESSAGE_TYPE, FIELD = 4, 2  # FileDescriptorProto.message_type and DescriptorProto.field, in paths of comments


def comments_of_limits() -> dict[str, str]:
    """Returns the comment of each field `limit` in protos/, by the name of its message."""
    found = {}
    for file in compile_protos(PROTOS).file:
        comments = {
            tuple(each.path): each.leading_comments.strip() for each in file.source_code_info.location
        }
        for number, message in enumerate(file.message_type):
            for index, field in enumerate(message.field):
                if field.name == "limit":
                    found[message.name] = comments[(MESSAGE_TYPE, number, FIELD, index)]
    return found


def test_the_contracts_say_the_bounds_of_lists() -> None:
    most = {
        "FindRequest": FOUND_MOST_ROWS,
        "FollowEventsRequest": FOLLOWED_MOST,
        "ListMerchantsRequest": MERCHANTS_PER_PAGE,
        "ListPeopleRequest": 200,
    }
    comments = comments_of_limits()
    assert len(comments) > 8
    for message, comment in comments.items():
        bound = most.get(message, values.LIST_MOST_ROWS)
        usual = {values.LIST_ROWS, bound}
        (stated,) = re.findall(r"^1 to (\d+)(?:; 0 means (\d+))?\.$", comment)
        assert int(stated[0]) == bound, message
        assert not stated[1] or int(stated[1]) in usual, message


def test_who_calls_what_waits_for_a_server_of_others_waits_as_long() -> None:
    """The validators of the service's settings count on it."""
    rows = permissions_of("webhooks")
    methods = {method.rpartition("/")[2] for method, row in rows.items() if row.kind == "resends"}
    calls = {}
    for path in (each for folder in ("cli", "console", "gateway") for each in sources(folder)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in methods:
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                calls[where] = {each.arg: ast.unparse(each.value) for each in node.keywords}
    assert len(calls) >= 5
    assert {each["timeout"] for each in calls.values()} == {"OUTWARD_CALL_SECONDS"}, calls


def test_the_command_reads_merchants_in_pages_of_the_size_that_the_service_gives() -> None:
    assert merchants_cli.PAGE == MERCHANTS_PER_PAGE


@pytest.mark.parametrize("code", ["sbp", "Card_RU-1", "x" * 64])
def test_merchants_may_be_allowed_every_method_that_can_be_set(code: str) -> None:
    assert parse_method_codes([values.code("method_code", code)]) == [code]


@pytest.mark.parametrize("code", ["", "a b", "x" * 65, "sbp\n"])
def test_merchants_are_allowed_no_method_that_cannot_be_set(code: str) -> None:
    with pytest.raises(Refused):
        values.code("method_code", code)
    with pytest.raises(ValueError, match="1 to 64"):
        parse_method_codes([code])


def test_a_call_that_has_waited_for_its_place_still_has_time_in_its_request() -> None:
    assert WAIT_SECONDS + CALL_SECONDS <= REQUEST_SECONDS
    assert all(kind.seconds + CALL_SECONDS <= REQUEST_SECONDS for kind in KINDS)


def test_the_kinds_of_accounts_are_the_same_in_contract_services_database_and_console() -> None:
    kinds = {str(kind) for kind in catalog.AccountKind}
    named = {
        name.removeprefix("ACCOUNT_KIND_").lower()
        for name in catalog_pb2.AccountKind.DESCRIPTOR.values_by_name
    }
    assert named - {"unspecified"} == kinds
    assert {str(kind) for kind in account_forms.AccountKind} == kinds
    assert set(methods.KINDS) == kinds
    migrations = "".join(path.read_text() for path in sources("services/catalog/migrations/versions"))
    (*_, checked) = re.findall(r"account_kind IN \(([^)]+)\)", migrations)
    assert set(re.findall(r"'(\w+)'", checked)) == kinds


def test_the_desk_counts_refunds_without_an_account_from_the_age_on_that_members_are_reminded_at() -> None:
    assert timedelta(days=withdrawals.ACCOUNT_WAITS_DAYS) == ACCOUNT_WAITS


def test_the_questions_about_networks_of_three_consoles_full_of_strangers_leave_a_place() -> None:
    (share,) = (each.share for each in identity.SLOTS if each.name == "networks")
    assert share is not None and share.waiting > 3 * strangers.KINDS[strangers.SIGN_INS].at_a_time
