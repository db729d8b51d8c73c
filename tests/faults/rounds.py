"""One round: load, faults, calm, and then what the checker says."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg2

from deploy.local.waiting import wait_until
from kit.base.clock import monotonic_seconds
from tests.e2e.market import Shop, patiently
from tests.faults import checker
from tests.faults.arena import DELIVERY_SECONDS, Arena
from tests.faults.journal import Journal, MoodyReceiver, lines, received_body
from tests.faults.people import signed_in
from tests.faults.plan import Fault, Kind
from tests.faults.shoppers import STEP_SECONDS, Shoppers
from tests.support.stack import Stack

SHOPS: Final = 2
SHOPPERS: Final = 4
# A killed deliverer's claims are free after 34 s; the retries that follow take a few more.
SETTLE_SECONDS: Final = 120


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one round came to. `violations` is what matters; the rest says how hard it was tried."""

    seed: int
    faults: int
    kills: int
    requests: int
    created: int
    unanswered: int
    refused_5xx: int
    by_line: int
    delivered: int
    duplicates: int
    pages: int
    longest_without_create_seconds: float
    settled_seconds: float
    violations: Sequence[str]
    seen: checker.Evidence = field(repr=False)


class Standing(Protocol):
    """A stack whose books can be read past all that is between."""

    @property
    def stack(self) -> Stack: ...

    def admin_url(self, database: str) -> str: ...


def run_round(
    arena: Arena, folder: Path, faults: Sequence[Fault], *, seed: int, tell: Callable[[str], None]
) -> Figures:
    """Do the faults on a running stack, under the load of the seed; its journals stay in `folder`."""
    shops = [patiently(lambda: Shop.opened(arena.stack)) for _ in range(SHOPS)]
    merchants = [shop.merchant_id for shop in shops]
    clients, receiver = (Journal(folder / f"{seed}-{name}.jsonl") for name in ("clients", "receiver"))
    with (
        MoodyReceiver(receiver, seed=seed, late_seconds=DELIVERY_SECONDS + 0.5) as endpoint,
        Shoppers(
            shops,
            services=arena.services,
            identity=arena.stack.identity,
            callback=endpoint.url(),
            journal=clients,
        ) as shoppers,
        signed_in(arena.stack) as people,
    ):
        healed = _under_faults(arena, shoppers, faults, seed=seed, tell=tell)
        not_settled = settle(arena, merchants)
        settled_seconds = monotonic_seconds() - healed
        if not not_settled:
            not_settled = after(arena, shoppers, shops, clients.path, seed=seed)
        people.stop()
        refused = people.violations()
    clients.close()
    receiver.close()
    seen = checker.evidence(
        arena.admin_url,
        secrets={shop.merchant_id: shop.secret for shop in shops},
        clients=clients.path,
        receiver=receiver.path,
    )
    late = [f"not settled after {SETTLE_SECONDS} s: {not_settled}"] if not_settled else []
    return _figures(
        seen,
        faults,
        seed=seed,
        pages=people.pages,
        settled_seconds=settled_seconds,
        found=late + refused + checker.violations(seen),
    )


def _under_faults(
    arena: Arena, shoppers: Shoppers, faults: Sequence[Fault], *, seed: int, tell: Callable[[str], None]
) -> float:
    """Until every purchase that was begun is through; returns when the last fault was over."""
    stop = threading.Event()
    threads = shoppers.shop_until(stop, seed=seed, count=SHOPPERS)
    try:
        for fault in faults:
            threading.Event().wait(fault.wait_seconds)
            tell(str(fault))
            arena.do(fault)
    finally:
        healed = monotonic_seconds()
        stop.set()
        for thread in threads:
            thread.join(3 * STEP_SECONDS)
    return healed


def settle(arena: Standing, merchants: Sequence[str]) -> str:
    """What has not arrived in time; empty when all has."""
    left = "PostgreSQL did not answer"

    def settled() -> bool:
        nonlocal left
        try:
            left = checker.unsettled(arena.admin_url, merchants)
        except psycopg2.OperationalError:
            return False
        return not left

    try:
        wait_until(settled, "all to settle", timeout_seconds=SETTLE_SECONDS, every_seconds=0.2)
        arena.stack.wait_until_ready()
    except TimeoutError as late:
        return left or str(late)
    return ""


def after(arena: Standing, shoppers: Shoppers, shops: Sequence[Shop], clients: Path, *, seed: int) -> str:
    """Everything that was created is read once more, and business goes on; not one failure is allowed."""
    shoppers.phase = "after"
    by_id = {shop.merchant_id: shop for shop in shops}
    created = [
        (by_id[line["merchant_id"]], json.loads(line["body"])["invoice_id"])
        for line in lines(clients)
        if line["what"] == "create" and line["http"] == 201
    ]
    for shop, invoice_id in created:
        shoppers.read(shop, invoice_id)
    stop = threading.Event()
    threads = shoppers.shop_until(stop, seed=-seed, count=SHOPPERS)
    stop.set()  # one purchase each
    for thread in threads:
        thread.join(3 * STEP_SECONDS)
    return settle(arena, list(by_id))


def _figures(
    seen: checker.Evidence,
    faults: Sequence[Fault],
    *,
    seed: int,
    pages: int,
    settled_seconds: float,
    found: list[str],
) -> Figures:
    answers = [answer for answer in seen.answers if "http" in answer]
    created = sorted(
        answer["ended"]
        for answer in answers
        if answer["what"] == "create" and answer["http"] == 201 and answer["phase"] == "faults"
    )
    gaps = (later - earlier for earlier, later in itertools.pairwise(created))
    return Figures(
        seed=seed,
        faults=len(faults),
        kills=sum(fault.kind is Kind.KILL for fault in faults),
        requests=len(answers),
        created=len(created),
        unanswered=sum(answer["http"] is None for answer in answers),
        refused_5xx=sum((answer["http"] or 0) >= 500 for answer in answers),
        by_line=len(seen.line_payments),
        delivered=len(seen.received),
        duplicates=duplicates(seen.received),
        pages=pages,
        longest_without_create_seconds=max(gaps, default=0.0),
        settled_seconds=settled_seconds,
        violations=found,
        seen=seen,
    )


def duplicates(received: Sequence[Any]) -> int:
    """Webhooks that came again though the receiver had answered them well in time."""
    answered: Counter[str] = Counter()
    twice = 0
    for request in received:
        event_id = json.loads(received_body(request))["event_id"]
        twice += answered[event_id] > 0
        answered[event_id] += request["mood"] == "well"
    return twice
