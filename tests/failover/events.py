"""What befalls the primary, or the server that leads the stream. Each returns what was not as it should be."""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from kit.base.clock import monotonic_seconds
from tests.failover.arena import Arena
from tests.failover.patroni import Node
from tests.failover.witness import Witness

FROZEN_SECONDS: Final = 60
SILENT_SECONDS: Final = 60
DOWN_SECONDS: Final = 30
NATS_DOWN_SECONDS: Final = 15
BACK_SECONDS: Final = 15
"""Until a node that comes back has learned that it is the primary no more."""

Tell = Callable[[str], None]
Event = Callable[[Arena, Tell], list[str]]


def postgres_killed(arena: Arena, tell: Tell) -> list[str]:
    primary = arena.nodes.primary()
    tell(f"kill -9 of PostgreSQL on {primary.name}, the primary")
    primary.kill_postgres()
    return []


def switchover(arena: Arena, tell: Tell) -> list[str]:
    before = arena.nodes.primary()
    arena.nodes.switch_over()
    after = arena.nodes.primary()
    tell(f"{before.name} handed over to {after.name}")
    return [f"{before.name} is the primary still"] if after is before else []


def both_killed(arena: Arena, tell: Tell) -> list[str]:
    primary = _killed(arena, tell)
    _wait(DOWN_SECONDS)
    primary.start()
    return _replaced(arena, primary, tell)


def primary_frozen(arena: Arena, tell: Tell) -> list[str]:
    primary = arena.nodes.primary()
    tell(f"all processes of {primary.name}, the primary, are stopped for {FROZEN_SECONDS} s")
    return _cut_off(arena, primary, primary.frozen(), FROZEN_SECONDS, tell)


def network_silent(arena: Arena, tell: Tell) -> list[str]:
    primary = arena.nodes.primary()
    tell(f"no connection to {primary.name}, the primary, carries anything for {SILENT_SECONDS} s")
    return _cut_off(arena, primary, arena.silent(primary), SILENT_SECONDS, tell)


def data_deleted(arena: Arena, tell: Tell) -> list[str]:
    primary = _killed(arena, tell)
    primary.delete_data()
    tell(f"the data of {primary.name} are deleted")
    _wait(DOWN_SECONDS)
    primary.start()
    return _replaced(arena, primary, tell)


def nats_leader_killed(arena: Arena, tell: Tell) -> list[str]:
    leader = arena.nats.servers[arena.nats.leader()]
    tell(f"kill -9 of {leader.name}, which leads the stream")
    leader.kill()
    after = arena.nats.leader()
    tell(f"{after} leads the stream")
    _wait(NATS_DOWN_SECONDS)
    leader.start()
    arena.nats.wait_for_copies()
    return [f"{leader.name} leads the stream still"] if after == leader.name else []


EVENTS: Final[Mapping[str, Event]] = {
    "postgres": postgres_killed,
    "switchover": switchover,
    "both": both_killed,
    "frozen": primary_frozen,
    "silent": network_silent,
    "data": data_deleted,
    "nats": nats_leader_killed,
}


def _killed(arena: Arena, tell: Tell) -> Node:
    primary = arena.nodes.primary()
    tell(f"kill -9 of PostgreSQL and Patroni on {primary.name}, the primary")
    primary.kill()
    return primary


def _replaced(arena: Arena, before: Node, tell: Tell) -> list[str]:
    after = arena.nodes.primary()
    tell(f"{after.name} is the primary, {before.name} comes back")
    return [f"{before.name} is the primary still"] if after is before else []


def _cut_off(
    arena: Arena, primary: Node, away: AbstractContextManager[None], seconds: float, tell: Tell
) -> list[str]:
    """Asks the node, while it is away and when it comes back, to accept rows."""
    nodes = arena.nodes
    with Witness(nodes.url_of(primary, "postgres"), nodes.url("postgres")) as witness:
        with away:
            witness.begin()
            _wait(seconds)
            found = _replaced(arena, primary, tell)
        back = monotonic_seconds()
        _wait(BACK_SECONDS)
        tell(
            f"back, {primary.name} called itself the primary for {witness.primary_for_seconds(back):.1f} s more, "
            f"and accepted {len(witness.accepted)} of {len(witness.tried)} rows since it was cut off"
        )
    return found + witness.violations()


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)
