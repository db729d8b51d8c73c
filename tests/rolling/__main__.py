"""`python -m tests.rolling [--seed N] [--rounds N] [--at-once N]`: what `make rolling` calls.

Exit code 0 when every request of every round came through and nothing was done twice, 1 otherwise.
"""

import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final

from rich.table import Table

from tests.harness.command import Columns, Tell, add_seed, judge, options
from tests.rolling.cluster import Cluster
from tests.rolling.pods import Pace
from tests.rolling.rounds import Figures, run_round

COLUMNS: Final[Columns[Figures]] = {
    "seed": attrgetter("seed"),
    "restarts": attrgetter("restarts"),
    "before migration": attrgetter("early"),
    "requests": attrgetter("load.requests"),
    "a second": attrgetter("load.per_second"),
    "tried again": attrgetter("retried"),
    "failed": lambda each: len(each.load.failed),
    "201s": attrgetter("created"),
    "webhooks": attrgetter("webhooks"),
    "p99, ms": lambda each: round(1000 * each.slowest_seconds(0.99)),
    "slowest, ms": lambda each: round(1000 * each.slowest_seconds(1)),
}


def main() -> int:
    parser = options("rolling", __doc__)
    add_seed(parser)
    parser.add_argument("--rounds", type=int, default=2, help="how often every pod is replaced (default 2)")
    parser.add_argument("--per-second", type=int, default=200, help="requests (default 200)")
    parser.add_argument("--at-once", type=int, default=2, help="Deployments that roll at once (default 2)")
    given = parser.parse_args()

    def rounds(folder: Path, tell: Tell) -> Iterator[Figures]:
        with Cluster(folder, pace=Pace()) as cluster:
            for seed in range(given.seed, given.seed + given.rounds):
                tell(f"round of seed {seed}")
                figures = run_round(
                    cluster, seed=seed, per_second=given.per_second, at_once=given.at_once, tell=tell
                )
                for why, count in figures.load.retried.items():
                    tell(f"tried again {count} times: {why}")
                yield figures

    return judge("rolling", given.keep, rounds, COLUMNS, count=given.rounds, more=_used)


def _used(figures: Figures) -> Table:
    """What requests and limits of deploy/k8s/base are chosen by."""
    table = Table("Deployment", "cores", "MiB", title="The most that a pod of each used, its start included")
    for name, (cores, memory) in sorted(figures.used.items()):
        table.add_row(name, f"{cores:.2f}", f"{memory:.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
