"""Query values: what is taken, what is refused, and how it is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.paging import LAST_PAGE_ASKED, Page, page_from, page_to_json
from gateway.json.problems import InvalidFields
from gateway.json.query import NAME_MOST_CHARACTERS, UNKNOWN_MOST, Query


def faults_of(query: Query) -> dict[str, str]:
    with pytest.raises(InvalidFields) as caught:
        query.check()
    return {fault.field: fault.message for fault in caught.value.faults}


def test_absent_values_have_their_defaults() -> None:
    query = Query("")
    assert page_from(query) == Page(1, 20)
    assert query.currency("currency") is None
    query.check()


def test_all_that_is_wrong_is_told_at_once() -> None:
    query = Query("page=0&per_page=501&status=paid&currency=EURO&order=up")
    page_from(query)
    query.choice("status", {"pending": 1, "success": 2}, 0)
    query.currency("currency")
    query.choice("order", {"desc": 1, "asc": 2}, 0)
    assert faults_of(query) == {
        "page": "must be at least 1",
        "per_page": "must be at most 500",
        "status": "must be one of pending, success",
        "currency": "must be a currency code of three letters",
        "order": "must be one of desc, asc",
    }


NO_NUMBERS = [
    "", "x", "1.0", "1e3", "+1", " 1", "1 ", "%201", "0x1", "１", "%EF%BC%91", "1_000", "-1", "0", "%00", "%FF",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_page_number_is_refused(text: str) -> None:
    query = Query(f"page={text}")
    query.integer("page", default=1, least=1)
    assert "page" in faults_of(query)


@pytest.mark.parametrize("pair", ["page=1&page=1", "page=1&page=2", "page&page", "page=1&%70age=2"])
def test_a_value_given_twice_is_refused(pair: str) -> None:
    query = Query(pair)
    query.integer("page", default=1, least=1)
    assert faults_of(query) == {"page": "must be given once"}


def test_a_currency_may_be_of_any_case() -> None:
    assert Query("currency=eUr").currency("currency") == "EUR"


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    query = Query("curency=EUR&page=2&&=&a[]=1")
    assert query.integer("page", default=1, least=1) == 2
    query.currency("currency")
    assert faults_of(query) == {
        "curency": "unknown parameter, did you mean currency?",
        "": "unknown parameter",
        "a[]": "unknown parameter",
    }


def test_of_many_unknown_names_the_first_are_told() -> None:
    faults = faults_of(Query("&".join(f"{number}{'x' * 1000}" for number in range(1000))))
    assert len(faults) == UNKNOWN_MOST
    assert {len(name) for name in faults} == {NAME_MOST_CHARACTERS}


def test_a_page_beyond_all_numbers_is_asked_for_within_bigint() -> None:
    page = page_from(Query("page=" + "9" * 300 + "&per_page=500"))
    assert page.number == int("9" * 300)
    assert page.asked == LAST_PAGE_ASKED
    assert LAST_PAGE_ASKED * 500 < 2**63


@given(total=st.integers(0, 10**9), per_page=st.integers(1, 500))
def test_the_pages_hold_all_rows_and_none_is_empty(total: int, per_page: int) -> None:
    pages = page_to_json(Page(1, per_page), total, [], id_name="invoice_id")["total_pages"]
    assert pages * per_page >= total > (pages - 1) * per_page or total == pages == 0


@given(st.text(max_size=60))
def test_no_query_string_is_too_strange(text: str) -> None:
    query = Query(text)
    page_from(query)
    try:
        query.check()
    except InvalidFields as invalid:
        assert invalid.faults
