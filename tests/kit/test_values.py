"""kit.rpc.values: each check returns the value that it accepts, and names the field of one that it refuses."""

from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

import pytest

from kit.base.money import parse_fraction
from kit.rpc import values
from kit.rpc.errors import Refused, not_found

ID = "0198f0c1-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("checked", "expected"),
    [
        (values.uuid("id", ID), UUID(ID)),
        (values.uuid("id", ID.upper()), UUID(ID)),
        (values.text("name", "a\nb", most=3), "a\nb"),
        (values.text("name", "", least=0, most=3), ""),
        (values.label("name", "Ääkköset", most=8), "Ääkköset"),
        (values.code("code", "sbp_RU-1"), "sbp_RU-1"),
        (values.decimal("amount", "-0.10"), Decimal("-0.10")),
        (values.parsed("share", "0.5", parse_fraction), Decimal("0.5")),
        (values.whole_number("days", 3, least=1, most=3), 3),
        (values.whole_number("days", 10**9, least=0), 10**9),
        (values.rows(0), 100),
        (values.rows(1000), 1000),
        (values.rows(0, default=7, most=9), 7),
    ],
)
def test_an_accepted_value_is_returned(checked: object, expected: object) -> None:
    assert checked == expected


@pytest.mark.parametrize(
    ("check", "field"),
    [
        (lambda: values.uuid("id", f"{{{ID}}}"), "id"),
        (lambda: values.text("name", "", most=3), "name"),
        (lambda: values.text("name", "abcd", most=3), "name"),
        (lambda: values.text("name", "a\0b", most=3), "name"),
        (lambda: values.label("name", "  ", most=3), "name"),
        (lambda: values.label("name", "a\nb", most=3), "name"),
        (lambda: values.label("name", "a\u202eb", most=3), "name"),
        (lambda: values.code("code", "a b"), "code"),
        (lambda: values.code("code", "a" * 65), "code"),
        (lambda: values.code("code", "sbp\n"), "code"),
        (lambda: values.decimal("amount", "1e2"), "amount"),
        (lambda: values.parsed("share", "1.1", parse_fraction), "share"),
        (lambda: values.whole_number("days", 0, least=1, most=3), "days"),
        (lambda: values.whole_number("days", 4, least=1, most=3), "days"),
        (lambda: values.whole_number("days", -1, least=0), "days"),
        (lambda: values.rows(-1), "limit"),
        (lambda: values.rows(1001), "limit"),
        (lambda: values.page(0, 10), "page"),
        (lambda: values.page(1, 0), "per_page"),
        (lambda: values.page(1, 501), "per_page"),
        (lambda: values.at_most("ids", ["a", "b"], 1), "ids"),
    ],
)
def test_a_refusal_names_the_field(check: Callable[[], object], field: str) -> None:
    with pytest.raises(Refused) as refused:
        check()
    assert refused.value.reason == "VALIDATION_ERROR"
    assert refused.value.metadata["field"] == field


def test_text_that_is_no_uuid_is_the_id_of_nothing() -> None:
    with pytest.raises(Refused, match="DEAL_NOT_FOUND"):
        values.uuid_or(lambda: not_found("DEAL_NOT_FOUND", "No such deal"), "deal-1")
