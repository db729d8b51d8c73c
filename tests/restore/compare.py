"""What a restore kept, lost and doubled: PostgreSQL and the journals, compared without any process of ours."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults import checker
from tests.faults.checker import Evidence
from tests.faults.journal import received_body

OF_BOOKS = (
    checker.each_external_id_is_used_once,
    checker.each_success_is_credited_once_with_the_right_amount,
    checker.the_ledger_sums_to_zero,
    checker.each_bank_line_pays_at_most_its_amount_and_each_deal_once,
    checker.each_file_of_a_bank_is_taken_whole,
    checker.nothing_is_left_behind,
)
"""The checks of `make faults` that hold whatever was lost."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`lost` are invoices that were answered and are gone; `otherwise` those whose merchant was told two different
    things; `again` the webhooks that came again unchanged.
    """

    kept: int
    lost: Sequence[str]
    otherwise: Sequence[str]
    again: int
    violations: Sequence[str]


def outcome(
    seen: Evidence, *, until_seconds: float, before: Sequence[Mapping[str, Any]], accounted_for: set[str]
) -> Outcome:
    """`until_seconds` is the monotonic time up to which all must be there; `before` are the webhooks received before
    the loss; `accounted_for` are the invoices that `fiatgate verify` has named.
    """
    created = {
        json.loads(answer["body"])["invoice_id"]: answer["ended"]
        for answer in seen.answers
        if answer["what"] == "create" and answer["http"] == 201
    }
    lost = [id for id in created if id not in seen.invoices]
    told = _told(seen.received)
    otherwise = [id for id, events in told.items() if len(events) > 1]
    bodies = {received_body(each) for each in before}
    return Outcome(
        kept=len(created) - len(lost),
        lost=lost,
        otherwise=otherwise,
        again=sum(received_body(each) in bodies for each in seen.received[len(before) :]),
        violations=[
            *(
                f"invoice {id} was answered before the restore point and is lost"
                for id in lost
                if created[id] <= until_seconds
            ),
            *_ends_lost(seen, until_seconds),
            *(
                f"the merchant was told two things of invoice {id}, and verify did not name it"
                for id in otherwise
                if id not in accounted_for
            ),
            *(violation for check in OF_BOOKS for violation in check(_of_known_invoices(seen))),
        ],
    )


def beyond(before: Sequence[Mapping[str, Any]], statuses: Mapping[str, str]) -> set[str]:
    """Returns the invoices that merchants were told of and that the restored invoices have not or have as pending."""
    return {id for id in _told(before) if statuses.get(id, "pending") == "pending"}


def _told(received: Sequence[Mapping[str, Any]]) -> Mapping[str, set[str]]:
    """Returns by invoice the ids of the events that its merchant got: one, or the merchant acts twice."""
    told: dict[str, set[str]] = defaultdict(set)
    for request in received:
        body = json.loads(received_body(request))
        told[body["order_id"]].add(body["event_id"])
    return told


def _ends_lost(seen: Evidence, until_seconds: float) -> Iterator[str]:
    for answer in seen.answers:
        if answer["what"] != "read" or answer["http"] != 200 or answer["ended"] > until_seconds:
            continue
        id, status = answer["invoice_id"], json.loads(answer["body"])["data"]["status"]
        now = seen.invoices.get(id)
        if now is None or status not in ("pending", now["status"]):
            yield f"invoice {id} was {status} before the restore point and is {now and now['status']}"


def _of_known_invoices(seen: Evidence) -> Evidence:
    """Leaves out the answers: those of lost invoices prove nothing. Each check reads the databases."""
    return Evidence(**{**vars(seen), "answers": []})
