"""One act on several things: its outcomes, and the refusals that end it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from console.calls import each_of, or_none
from kit.rpc.errors import Refused, database_unavailable, denied, not_found, unauthenticated
from tests.console.routes import apart

MISSING = not_found("DEAL_NOT_FOUND", "There is no such deal")
FORBIDDEN = denied("NOT_PERMITTED", "Your roles do not allow this")
Tried = list[str]


def refusing(refusals: Mapping[str, Refused], tried: Tried) -> Callable[[str], Awaitable[str]]:
    async def call(id: str) -> str:
        tried.append(id)
        await asyncio.sleep(0)
        if id in refusals:
            raise refusals[id]
        return id.upper()

    return call


def outcomes(refusals: Mapping[str, Refused], tried: Tried, *, at_once: int = 4) -> list[tuple[str, str]]:
    found = apart(
        each_of(list("abcdefgh"), refusing(refusals, tried), beside={"DEAL_NOT_FOUND"}, at_once=at_once)
    )
    return [(each.answer or "", each.refused.reason if each.refused else "") for each in found]


def test_each_thing_has_its_outcome_in_the_order_that_was_given() -> None:
    found = outcomes({"a": MISSING, "f": MISSING}, [])
    around = [("", "DEAL_NOT_FOUND")]
    assert found == [*around, *((each, "") for each in "BCDE"), *around, ("G", ""), ("H", "")]


def test_after_a_service_failed_no_further_call_begins() -> None:
    tried: Tried = []
    found = outcomes({"c": database_unavailable()}, tried, at_once=1)
    assert tried == ["a", "b", "c"]
    assert found == [("A", ""), ("B", ""), ("", "DB_UNAVAILABLE"), *[("", "")] * 5]


def test_a_right_that_is_missing_is_asked_for_once() -> None:
    tried: Tried = []
    with pytest.raises(Refused, match="NOT_PERMITTED"):
        outcomes(dict.fromkeys("abcdefgh", FORBIDDEN), tried)
    assert tried == ["a"]
    assert outcomes({"a": database_unavailable()}, [])[0] == ("", "DB_UNAVAILABLE")


@pytest.mark.parametrize("problem", ["key", "age"])
def test_a_page_does_without_a_service_that_is_away_and_not_without_one_that_refuses(problem: str) -> None:
    async def call() -> str:
        raise unauthenticated("ACTOR_INVALID", "The token of the person does not count", problem=problem)

    if problem == "key":
        assert apart(or_none(call())) is None
    else:
        with pytest.raises(Refused):
            apart(or_none(call()))
