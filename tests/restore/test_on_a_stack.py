"""A short round of `make restore`: the whole server goes back to before a mistake. `make soak` runs it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.faults.checker import Evidence
from tests.restore import compare
from tests.restore.rounds import Figures, Loss, World, run_round

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

SECONDS = 6
BEYOND_SECONDS = 4


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("restore")) as started:
        yield started


@pytest.fixture(scope="module")
def whole(world: World) -> Figures:
    return run_round(
        world, Loss.MISTAKE, seconds=SECONDS, beyond_seconds=BEYOND_SECONDS, tell=lambda text: None
    )


def test_a_restore_keeps_what_was_answered_and_verify_names_what_it_lost(whole: Figures) -> None:
    assert whole.violations == []
    assert whole.outcome.kept > 0 and whole.outcome.lost, "there was something to keep, and to lose"
    assert whole.beyond > 0 and whole.looked_up > 0


def _without_an_invoice(seen: Evidence) -> Evidence:
    first = next(iter(seen.invoices))
    return replace(seen, invoices={id: row for id, row in seen.invoices.items() if id != first})


def _with_a_credit_twice(seen: Evidence) -> Evidence:
    credit = next(row for row in seen.transfers if row["reference"].partition(":")[2] in seen.invoices)
    return replace(seen, transfers=[*seen.transfers, credit])


def _with_another_end(seen: Evidence) -> Evidence:
    read = next(
        each["invoice_id"]
        for each in seen.answers
        if each["what"] == "read" and '"success"' in each["body"] and each["invoice_id"] in seen.invoices
    )
    return replace(seen, invoices={**seen.invoices, read: dict(seen.invoices[read]) | {"status": "expired"}})


def _without_a_bank_line(seen: Evidence) -> Evidence:
    return replace(seen, bank_lines=seen.bank_lines[1:])


@pytest.mark.parametrize(
    "harm", [_without_an_invoice, _with_a_credit_twice, _with_another_end, _without_a_bank_line]
)
def test_the_comparison_notices(whole: Figures, harm: Callable[[Evidence], Evidence]) -> None:
    def violations(seen: Evidence) -> list[str]:
        lasting = float("inf")  # all answers are of before the restore point, and none of them was lost
        kept = [each for each in seen.answers if not _of_any(each, whole.outcome.lost)]
        return list(
            compare.outcome(
                replace(seen, answers=kept), until_seconds=lasting, before=[], accounted_for=whole.named_ids
            ).violations
        )

    assert violations(whole.seen) == []
    assert violations(harm(whole.seen)) != []


def _of_any(answer: Mapping[str, Any], invoice_ids: Sequence[str]) -> bool:
    return any(id in str(answer) for id in invoice_ids)
