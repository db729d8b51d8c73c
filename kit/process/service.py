"""The declaration of a service: its name, settings, parts and loops."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import grpc

from kit.base.config.processes import ServiceSettings
from kit.rpc import status
from kit.rpc.actor_tokens import Keys
from kit.rpc.slots import Slots
from kit.work.worker import Worker

if TYPE_CHECKING:  # costly to import; the service imports it anyway
    from kit.db.database import Database


class Wired(Protocol):
    """The service's `Deps`, which `wire` returns. If it has a `bus`, the process starts and closes it."""

    @property
    def db(self) -> "Database": ...


S = TypeVar("S", bound=ServiceSettings)
D = TypeVar("D", bound=Wired)


@dataclass(frozen=True, kw_only=True)
class Service(Generic[S, D]):
    """The declaration of a service.

    name      as in `services.<name>`, in its variables and in the log
    settings  its settings class
    wire      assembles its parts; opens no connection
    add_to    registers its servicers
    slots     the kinds of its calls: threads and bounds of each
    workers   loops that do its work: relay, consumers, timers; any number of processes may run them
    companions  further loops that each of its processes needs: a snapshot kept fresh in memory, the relay of that
                process's own commits
    gauges    numbers worth watching, for `fiatgate status`; may query the database
    actor_keys  the keys of actor tokens, for the service that makes them; else they are fetched from it
    """

    name: str
    settings: type[S]
    wire: Callable[[S], D]
    add_to: Callable[[grpc.Server, D], None]
    slots: Sequence[Slots] = ()
    workers: Callable[[D], Sequence[Worker]] = lambda deps: ()
    companions: Callable[[D], Sequence[Worker]] = lambda deps: ()
    gauges: Callable[[D], Sequence[status.Gauge]] = lambda deps: ()
    actor_keys: Callable[[D], Keys] | None = None
