"""`python -m tests.faults [--seed N] [--rounds N] [--seconds N] ...`: what `make faults` calls.

Exit code 0 when no promise was broken in any round, 1 otherwise; what was seen is kept then, and where is told.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final

from tests.faults.arena import Arena
from tests.faults.plan import plan
from tests.faults.rounds import Figures, run_round
from tests.harness.command import Columns, Tell, add_seed, judge, options

COLUMNS: Final[Columns[Figures]] = {
    "seed": attrgetter("seed"),
    "faults": attrgetter("faults"),
    "kills": attrgetter("kills"),
    "requests": attrgetter("requests"),
    "201s": attrgetter("created"),
    "no answer": attrgetter("unanswered"),
    "5xx": attrgetter("refused_5xx"),
    "paid by line": attrgetter("by_line"),
    "webhooks": attrgetter("delivered"),
    "twice": attrgetter("duplicates"),
    "pages of people": attrgetter("pages"),
    "longest gap, s": attrgetter("longest_without_create_seconds"),
    "settled, s": attrgetter("settled_seconds"),
}


def main() -> int:
    parser = options("faults", __doc__)
    add_seed(parser)
    parser.add_argument("--rounds", type=int, default=5, help="how many seeds (default 5)")
    parser.add_argument("--seconds", type=float, default=20, help="of faults per round (default 20)")
    given = parser.parse_args()

    def rounds(folder: Path, tell: Tell) -> Iterator[Figures]:
        with Arena(folder) as arena:
            for seed in range(given.seed, given.seed + given.rounds):
                tell(f"round of seed {seed}")
                faults = plan(seed, seconds=given.seconds)
                yield run_round(arena, folder, faults, seed=seed, tell=tell)

    return judge("faults", given.keep, rounds, COLUMNS, count=given.rounds)


if __name__ == "__main__":
    sys.exit(main())
