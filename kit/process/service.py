"""What makes one service different from the next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import grpc

from kit import config
from kit.rpc import status
from kit.rpc.callers import Callers
from kit.rpc.slots import Slots
from kit.worker import Worker

if TYPE_CHECKING:  # costly to import, and the service brings it
    from kit.db import Database


class Wired(Protocol):
    """What `wire` returns: the service's `Deps`. One that has a `bus` gets it started and closed."""

    @property
    def db(self) -> "Database": ...


S = TypeVar("S", bound=config.ServiceSettings)
D = TypeVar("D", bound=Wired)


@dataclass(frozen=True, kw_only=True)
class Service(Generic[S, D]):
    """What makes one service different from the next.

    name      as in `services.<name>`, in its variables and in the log
    settings  its settings class
    wire      puts its parts together; connects nowhere
    add_to    registers its servicers
    callers   who may call what of them, once TLS tells who calls
    slots     the kinds of their calls: threads and bounds of each
    workers   loops that do its work: relay, consumers, timers; any number of processes may run them
    companions  loops that every process of it needs besides: a snapshot kept fresh in memory, the relay of what
              that very process commits
    gauges    numbers worth watching, for `fiatgate status`; may ask the database
    """

    name: str
    settings: type[S]
    wire: Callable[[S], D]
    add_to: Callable[[grpc.Server, D], None]
    callers: Callers
    slots: Sequence[Slots] = ()
    workers: Callable[[D], Sequence[Worker]] = lambda deps: ()
    companions: Callable[[D], Sequence[Worker]] = lambda deps: ()
    gauges: Callable[[D], Sequence[status.Gauge]] = lambda deps: ()
