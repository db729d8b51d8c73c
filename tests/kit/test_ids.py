"""kit.ids: what is an id and what is only somebody's order number."""

import pytest

from kit.ids import new_id, parse_id


def test_new_ids_are_version_7_and_only_grow() -> None:
    ids = [new_id() for _ in range(1000)]
    assert {each.version for each in ids} == {7}
    assert ids == sorted(ids)
    assert len(set(ids)) == 1000


def test_an_id_is_read_back_in_either_case() -> None:
    one = new_id()
    assert parse_id(str(one)) == one
    assert parse_id(str(one).upper()) == one


@pytest.mark.parametrize(
    "text",
    [
        "",
        "order-1",
        "{01a1f868-ce33-7093-ad97-76aeaf3cfa65}",
        "urn:uuid:01a1f868-ce33-7093-ad97-76aeaf3cfa65",
        "01a1f868ce337093ad9776aeaf3cfa65",
        "01a1f868-ce33-7093-ad97-76aeaf3cfa65\n",
        " 01a1f868-ce33-7093-ad97-76aeaf3cfa65",
        "01a1f868-ce33-7093-ad97-76aeaf3cfa6٣",
    ],
)
def test_only_the_canonical_form_is_an_id(text: str) -> None:
    assert parse_id(text) is None
