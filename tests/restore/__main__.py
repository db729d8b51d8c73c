"""`python -m tests.restore [--losses disk mistake ...] [--seconds N] [--beyond N]`: what `make restore` calls.

Exit code 0 when each restore kept all that was answered before its time and `fiatgate verify` named all that others
knew beyond it, 1 otherwise.
"""

import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final

from tests.harness.command import Columns, Tell, judge, options
from tests.restore.rounds import Figures, Loss, World, run_round

COLUMNS: Final[Columns[Figures]] = {
    "lost": attrgetter("loss"),
    "backup, MiB": attrgetter("backup_mib"),
    "behind, s": attrgetter("behind_seconds"),
    "restore, s": attrgetter("restore_seconds"),
    "invoices kept": attrgetter("outcome.kept"),
    "invoices lost": lambda each: len(each.outcome.lost),
    "told beyond": attrgetter("beyond"),
    "named": attrgetter("named"),
    "restored": attrgetter("restored"),
    "by hand": attrgetter("by_hand"),
    "webhooks again": attrgetter("outcome.again"),
    "told two things": lambda each: len(each.outcome.otherwise),
    "to look up": attrgetter("looked_up"),
    "left": attrgetter("left"),
}


def main() -> int:
    parser = options("restore", __doc__)
    losses = list(map(str, Loss))
    parser.add_argument("--losses", nargs="+", choices=losses, default=losses, help="(default: all)")
    parser.add_argument(
        "--seconds", type=float, default=20, help="of load up to the restore point (default 20)"
    )
    parser.add_argument("--beyond", type=float, default=8, help="seconds of load after it (default 8)")
    given = parser.parse_args()

    def rounds(folder: Path, tell: Tell) -> Iterator[Figures]:
        with World(folder) as world:
            for loss in map(Loss, given.losses):
                tell(str(loss))
                yield run_round(world, loss, seconds=given.seconds, beyond_seconds=given.beyond, tell=tell)

    return judge("restore", given.keep, rounds, COLUMNS, count=len(given.losses))


if __name__ == "__main__":
    sys.exit(main())
