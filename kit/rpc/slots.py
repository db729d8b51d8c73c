"""The threads of a server, divided among kinds of calls: no kind can take the threads of another.

Each service has its kinds beside its servicers (`SLOTS` in its `rpc`); the proto of a method names its kind. A kind
has threads of its own and a bound of waiting calls; a call beyond the bound is refused at once. A kind may also bound
the calls of one owner, for example of one merchant, and let owners take turns (`kit.rpc.turns`).
"""

from __future__ import annotations  # a future is generic in its stubs only

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from operator import attrgetter
from typing import Any, Final, ParamSpec, TypeVar

from kit.base.actors import current
from kit.rpc import actors, errors
from kit.rpc.turns import FULL, REFUSED, Parts, Share, Turns, count_from_the_start

P = ParamSpec("P")
R = TypeVar("R")

_REFUSING_THREADS: Final = 2


def _whole(_request: Any) -> Parts:
    return ()


@dataclass(frozen=True, kw_only=True)
class Slots:
    """One kind of calls.

    name     in the protos, in metrics and in names of threads
    threads  of this kind; None: the setting THREADS
    waiting  calls that may wait for a thread; more are refused at once
    share    the part of the kind that one owner may take; None: all of it
    owner    returns the owner of a request, where there is a share
    parts    returns the part of the owner that a request is of, the widest name first; as many names for each request
    threads_per_connection  threads that can share a database connection; more than one where calls mostly wait for
                            other things
    """

    name: str
    threads: int | None = None
    waiting: int = 32
    threads_per_connection: int = 1
    share: Share | None = None
    owner: Callable[[Any], str] = str
    parts: Callable[[Any], Parts] = _whole

    @property
    def connections(self) -> int:
        """The database connections that its calls need at the same time, besides those for THREADS."""
        in_all = None if self.share is None else self.share.in_all
        return ceil((in_all or self.threads or 0) / self.threads_per_connection)


def of_people(
    name: str,
    *,
    working: int,
    waiting: int = 32,
    in_all: int | None = None,
    arriving: int = 64,
    threads_per_connection: int = 1,
) -> Slots:
    """Returns a kind that members of merchants and operators call, each side in places of its own: members take none of
    an operator. Among the members merchants take turns, and the people of each.

    working, waiting  calls of one side in work at the same time, and besides them waiting for a turn
    in_all            calls of both sides in work at the same time; None: as many as of one
    arriving          further calls, for the moment until a thread lets them wait or refuses them; beyond them calls of
                      both sides are refused
    """
    return Slots(
        name=name,
        threads=2 * (working + waiting),
        waiting=arriving,
        threads_per_connection=threads_per_connection,
        owner=lambda _request: actors.side(current()),
        parts=lambda _request: actors.parts(current()),
        share=Share(
            working=working,
            waiting=waiting,
            wait_seconds=3,
            in_all=in_all or working,
            for_many=lambda: current().kind == "process",
        ),
    )


def lists(*, in_all: int = 1) -> Slots:
    """Returns the kind for lists of merchants: `in_all` pages are read at the same time, and merchants take turns.

    A deep page uses a whole core, here or in PostgreSQL. There are many threads because a call that waits for its turn
    occupies one.
    """
    return Slots(
        name="lists",
        threads=24,
        waiting=20,
        owner=attrgetter("merchant_id"),
        share=Share(working=1, waiting=7, wait_seconds=3, in_all=in_all),
    )


def proofs() -> Slots:
    """Returns the kind for the verification of the books, one call at a time."""
    return Slots(name="proofs", threads=1, waiting=8)


@dataclass(frozen=True)
class Use:
    """Calls of a kind: in work now, waiting now, refused since the start."""

    working: int
    waiting: int
    refused: int


class Pools:
    """The threads of all kinds of one server."""

    def __init__(self, kinds: Sequence[Slots], *, threads: int) -> None:
        refusing = _Refusing()
        self._pools = {kind.name: Pool(kind, kind.threads or threads, refusing) for kind in kinds}

    def get(self, kind: str) -> Pool | None:
        """Returns the threads of a kind; None when there is no such kind."""
        return self._pools.get(kind)

    def use(self) -> Mapping[str, Use]:
        return {name: pool.use() for name, pool in self._pools.items()}


class _Thread(threading.local):
    refuses = False


_thread = _Thread()


class _Refusing(futures.ThreadPoolExecutor):
    """Threads that only refuse, so that a refusal is quick while all others work."""

    def __init__(self) -> None:
        super().__init__(_REFUSING_THREADS, thread_name_prefix="refusing", initializer=self._mark)

    @staticmethod
    def _mark() -> None:
        _thread.refuses = True


class Pool(futures.ThreadPoolExecutor):
    """The threads of one kind. gRPC submits each call of the kind to them."""

    def __init__(self, kind: Slots, threads: int, refusing: _Refusing) -> None:
        super().__init__(threads, thread_name_prefix=kind.name)
        self._name = kind.name
        self._most = threads + kind.waiting
        self._refusing = refusing
        self._owner = kind.owner
        self._parts = kind.parts
        self._turns = None if kind.share is None else Turns(kind.name, kind.share, threads=threads)
        self._counts = threading.Lock()
        self._calls = 0
        self._working = 0
        self._refused = 0
        count_from_the_start(kind.name)

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> futures.Future[R]:
        with self._counts:
            is_full = self._calls >= self._most
            self._calls += not is_full
        if is_full:
            return self._refusing.submit(fn, *args, **kwargs)
        try:
            call = super().submit(fn, *args, **kwargs)
        except BaseException:  # the pool is closed or no thread could be started: the call is not made
            self._ended()
            raise
        call.add_done_callback(self._ended)
        return call

    def _ended(self, _call: futures.Future[Any] | None = None) -> None:
        with self._counts:
            self._calls -= 1

    @contextmanager
    def turn(self, request: Any) -> Iterator[None]:
        """Runs the block as the work of a call. Raises `Refused` DB_UNAVAILABLE when the kind is full, and RATE_LIMITED
        when the owner of the request has too many calls.
        """
        if _thread.refuses:
            REFUSED.labels(self._name, FULL).inc()
            with self._counts:
                self._refused += 1
            raise errors.database_unavailable()
        with self._own_turn(request):
            with self._counts:
                self._working += 1
            try:
                yield
            finally:
                with self._counts:
                    self._working -= 1

    def _own_turn(self, request: Any) -> AbstractContextManager[None]:
        if self._turns is None:
            return nullcontext()
        return self._turns.turn(self._owner(request), self._parts(request))

    def use(self) -> Use:
        refused = 0 if self._turns is None else self._turns.refused
        with self._counts:
            return Use(self._working, self._calls - self._working, self._refused + refused)
