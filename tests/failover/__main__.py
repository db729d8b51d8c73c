"""`python -m tests.failover [EVENT ...] [--per-second N] ...`: what `make failover` calls.

Exit code 0 when no promise was broken in any round, 1 otherwise; the logs and journals are kept then.
"""

import logging
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final

from deploy.local.errors import CannotStart
from tests.failover import patroni
from tests.failover.arena import Arena
from tests.failover.events import EVENTS
from tests.failover.rounds import Figures, run_round
from tests.harness.command import Columns, Tell, add_seed, judge, options

COLUMNS: Final[Columns[Figures]] = {
    "event": attrgetter("event"),
    "no 201, s": attrgetter("created_seconds"),
    "no mark, s": attrgetter("marked_seconds"),
    "no confirm, s": attrgetter("confirmed_seconds"),
    "failing for, s": attrgetter("failing_seconds"),
    "after gap, s": attrgetter("late_seconds"),
    "after 15 s (< 25 %)": lambda each: f"{each.late_share:.0%}",
    "in step, s": attrgetter("in_step_seconds"),
    "calm failed": attrgetter("calm_failed"),
    "settled, s": attrgetter("settled_seconds"),
    "purchases": attrgetter("purchases"),
    "requests": attrgetter("sent"),
    "failed": attrgetter("failed"),
    "invoices lost": attrgetter("lost_invoices"),
    "deals lost": attrgetter("lost_deals"),
    "verify": lambda each: "clean" if each.verified else "not clean",
}


def main() -> int:
    parser = options("failover", __doc__)
    parser.add_argument(
        "events", nargs="*", metavar="EVENT", help=f"in this order (default all): {', '.join(EVENTS)}"
    )
    parser.add_argument("--per-second", type=int, default=20, help="purchases (default 20)")
    add_seed(parser)
    given = parser.parse_args()
    if unknown := [each for each in given.events if each not in EVENTS]:
        parser.error(f"no such event: {', '.join(unknown)}; there are {', '.join(EVENTS)}")
    events = given.events or list(EVENTS)
    logging.getLogger("nats").setLevel(logging.CRITICAL)  # its client tells of each server that is away

    def rounds(folder: Path, tell: Tell) -> Iterator[Figures]:
        tell(f"seed {given.seed}, {given.per_second} purchases a second; three nodes and a stack start")
        with Arena(folder) as arena:
            for number, event in enumerate(events, given.seed):
                tell(event)
                yield run_round(arena, folder, event, seed=number, per_second=given.per_second, tell=tell)

    try:
        patroni.require()
        return judge("failover", given.keep, rounds, COLUMNS, count=len(events))
    except CannotStart as reason:
        print(reason, file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main())
