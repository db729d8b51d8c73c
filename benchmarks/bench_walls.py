"""Attacks by one customer, merchant or stranger, beside another merchant's work at an even pace.

    python -m benchmarks.bench_walls [--only ROW ...] [--rounds 2] [--seconds 8] [--networks 1]

Each row is measured on a gateway or dashboard that has just started: the victim alone, then the victim under attack, in
turns. The victim creates 25 invoices a second, each over a connection of its own; in one row its customers also say
that they have paid, in another it resends webhooks. In the rows of the dashboard its members read ten pages a second,
and one a second signs in by password, from a network where they were before. A request's time begins when it was due,
so that none is left out of the figures because an earlier one was late.

The attacker is a process of its own and comes from another network than the victim (`benchmarks.walls.attackers`).
Limits: the victim's p99 under attack at most 2 times its p99 alone; 3 times beside floods, which share the two cores
with everything else. All its requests succeed. The attacked workers together take at most 64 MiB more.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.progress import track

from benchmarks.processor import processor_seconds
from benchmarks.report import Row, options, show
from benchmarks.walls.scene import Memory, Onslaught, Scene
from benchmarks.walls.victim import Series
from kit.base.clock import monotonic_seconds
from tests.support.stack import Stack

MOST_MEBIBYTES: Final = 64
FLOOD: Final = 3
OTHER: Final = 2
DASHBOARD: Final = "console-dashboard"


@dataclass(frozen=True)
class Wall:
    """One attack, and how many times longer the victim's requests may take.

    program   the attacked process
    networks  at least so many take part
    """

    attack: str
    title: str
    most_times: int
    kinds: tuple[str, ...] = ("create-invoice",)
    program: str = "gateway"
    networks: int = 1


WALLS: Final = (
    Wall(
        "catalog-hangs", "catalog hangs, four page looks a second", OTHER, ("create-invoice", "I have paid")
    ),
    Wall("payment-ids", "random payment links, 400 connections", FLOOD),
    Wall("wrong-keys", "well-formed wrong keys, 800 connections", FLOOD),
    Wall("deep-pages", "eight deep list pages of one merchant at a time", OTHER),
    Wall("resends", "eight resends to a tarpit at a time", OTHER, ("resend",)),
    Wall("parentheses", "2,000 ( in Content-Type, 16 connections", FLOOD),
    Wall("large-orders", "orders of 63 KiB with 21,000 empty objects, 110 a second", FLOOD),
    Wall("qr-codes", "QR codes of 40 payments, 64 connections", FLOOD),
    Wall(
        "passwords",
        "sign-ins by password from 200 networks, 400 connections",
        FLOOD,
        ("sign-in", "dashboard page"),
        program=DASHBOARD,
        networks=200,
    ),
    Wall(
        "cookies",
        "random session cookies from 190 networks, 380 connections",
        FLOOD,
        ("dashboard page",),
        program=DASHBOARD,
        networks=190,
    ),
)


@dataclass(frozen=True)
class Measured:
    """The effect of one attack on the victim."""

    wall: Wall
    alone: dict[str, Series]
    attacked: dict[str, Series]
    cores_alone: float  # on the average of the seconds in which the victim worked
    cores_attacked: float
    memory: Memory
    onslaught: Onslaught

    def rows(self) -> list[Row]:
        rows = []
        for kind in self.wall.kinds:
            alone, attacked = self.alone[kind], self.attacked[kind]
            times = attacked.p99_ms / alone.p99_ms
            failed = sum(attacked.failures.values())
            why = "".join(f", {status}: {count}" for status, count in attacked.failures.most_common(2))
            rows += [
                Row(
                    f"  {kind}, p99 alone and attacked",
                    f"{alone.p99_ms:.0f} ms, {attacked.p99_ms:.0f} ms: {times:.1f} x",
                    f"<= {self.wall.most_times} x",
                    times <= self.wall.most_times,
                ),
                Row(f"  failed of {len(attacked.latencies_ms)}", f"{failed}{why}", "0", failed == 0),
            ]
        grown = self.memory.peak - self.memory.before
        got = ", ".join(f"{status}: {count:,}" for status, count in self.onslaught.answers.most_common(3))
        return [
            Row(self.wall.title, ""),
            *rows,
            Row(
                f"  memory of the workers of {self.wall.program}",
                f"{self.memory.before} to {self.memory.peak} MiB",
                f"<= + {MOST_MEBIBYTES} MiB",
                grown <= MOST_MEBIBYTES,
            ),
            Row(
                "  cores that the stack took, alone and attacked",
                f"{self.cores_alone:.2f}, {self.cores_attacked:.2f}",
            ),
            Row("  the attacker's answers", got or "none"),
        ]


def measure(scene: Scene, wall: Wall, *, rounds: int, seconds: int, networks: int) -> Measured:
    """The victim alone and under attack, in turns."""
    victim = scene.victim(wall.kinds, seconds=2 * rounds * seconds)
    scene.with_a_fresh(wall.program)
    alone, attacked = ({kind: Series() for kind in wall.kinds} for _ in range(2))
    took_alone, took_attacked, answers = Took(), Took(), Onslaught()
    with scene.memory(wall.program) as memory:
        for _ in range(rounds):
            with took_alone.by(scene.stack):
                victim.work(alone, seconds=seconds)
            with (
                scene.under_attack(wall.attack, networks=max(networks, wall.networks)) as onslaught,
                took_attacked.by(scene.stack),
            ):
                victim.work(attacked, seconds=seconds)
            answers.answers.update(onslaught.answers)
            scene.wait_until_calm()
    return Measured(wall, alone, attacked, took_alone.cores, took_attacked.cores, memory, answers)


@dataclass
class Took:
    """Processor time of the stack, and the time in which it was taken."""

    processor_seconds: float = 0
    seconds: float = 0

    @contextmanager
    def by(self, stack: Stack) -> Iterator[None]:
        """Adds what is taken inside the block."""
        before, began_seconds = sum(processor_seconds(stack).values()), monotonic_seconds()
        yield
        self.processor_seconds += sum(processor_seconds(stack).values()) - before
        self.seconds += monotonic_seconds() - began_seconds

    @property
    def cores(self) -> float:  # seconds by seconds
        return self.processor_seconds / self.seconds


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=[wall.attack for wall in WALLS], metavar="ROW")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--networks", type=int, default=1, help="how many networks each attack comes from")
    given = parser.parse_args()
    walls = [wall for wall in WALLS if given.only is None or wall.attack in given.only]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="fiatgate-walls-") as folder, Scene.opened(Path(folder)) as scene:
        for wall in track(walls, "attacks", transient=True):
            measured = measure(
                scene, wall, rounds=given.rounds, seconds=given.seconds, networks=given.networks
            )
            rows += measured.rows()
    return show("Walls", rows)


if __name__ == "__main__":
    sys.exit(main())
