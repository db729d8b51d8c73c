"""The threads of a server, divided among kinds of calls: no kind can take the threads of another.

Each service names its kinds beside its servicers (`SLOTS` in its rpc.py), method by method. A kind has threads of its
own and a bound of waiting calls; a call beyond the bound is refused at once. A kind may also bound the calls of one
owner, for example of one merchant, and let owners take turns.
"""

from __future__ import annotations  # a future is generic in its stubs only

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from operator import attrgetter
from typing import Any, Final, ParamSpec, TypeVar

from kit.observe import metrics
from kit.rpc import deadline, errors

P = ParamSpec("P")
R = TypeVar("R")

REFUSED: Final = metrics.counter(
    "rpc_slots_refused",
    "Calls refused because their kind had no slot: too many of the kind (full), or of one owner (owner)",
    ["slots", "reason"],
)
FULL: Final = "full"
OWNER: Final = "owner"

OWNER_RETRY_SECONDS: Final = 5
"""When an owner whose call was refused may try again, as after a 503."""

_REFUSING_THREADS: Final = 2


@dataclass(frozen=True, kw_only=True)
class Share:
    """The part of a kind that the calls of one owner may take.

    working       calls of one owner in work at the same time
    waiting       further calls of one owner that may wait for their turn; more are refused at once
    wait_seconds  longest a call waits for its turn; then it is refused
    in_all        calls of all owners in work at the same time; None: as many as the kind has threads
    """

    working: int
    waiting: int = 0
    wait_seconds: float = 0
    in_all: int | None = None


@dataclass(frozen=True, kw_only=True)
class Slots:
    """One kind of calls.

    name     in metrics and in names of threads
    methods  its methods, as `InvoicesService/CreateInvoice`
    threads  of this kind; None: the setting THREADS
    waiting  calls that may wait for a thread; more are refused at once
    share    the part of the kind that one owner may take; None: all of it
    owner    returns the owner of a request, where there is a share
    threads_per_connection  threads that can share a database connection; more than one where calls mostly wait for
                            other things
    """

    name: str
    methods: frozenset[str]
    threads: int | None = None
    waiting: int = 32
    threads_per_connection: int = 1
    share: Share | None = None
    owner: Callable[[Any], str] = str

    @property
    def connections(self) -> int:
        """The database connections that its calls need at the same time, besides those for THREADS."""
        in_all = None if self.share is None else self.share.in_all
        return ceil((in_all or self.threads or 0) / self.threads_per_connection)


def lists(method: str, *, in_all: int = 1) -> Slots:
    """Returns the kind for lists of merchants: `in_all` pages are read at the same time, and merchants take turns.

    A deep page uses a whole core, here or in PostgreSQL. There are many threads because a call that waits for its turn
    occupies one.
    """
    return Slots(
        name="lists",
        methods=frozenset({method}),
        threads=24,
        waiting=20,
        owner=attrgetter("merchant_id"),
        share=Share(working=1, waiting=7, wait_seconds=3, in_all=in_all),
    )


def proofs(*methods: str) -> Slots:
    """Returns the kind for the verification of the books: BooksService and `methods`, one call at a time."""
    of_books = ("BooksService/CheckPage", "BooksService/ListParts")
    return Slots(name="proofs", methods=frozenset({*of_books, *methods}), threads=1, waiting=8)


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
        self._by_method = {method: self._pools[kind.name] for kind in kinds for method in kind.methods}

    def of(self, method: str) -> Pool | None:
        """Returns the threads for `/package.Service/Method`; None when it belongs to no kind."""
        return self._by_method.get(method.rpartition(".")[2])

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
        self._turns = None if kind.share is None else Turns(kind.name, kind.share, threads=threads)
        self._counts = threading.Lock()
        self._calls = 0
        self._working = 0
        self._refused = 0
        _count_from_the_start(kind.name)

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
        with nullcontext() if self._turns is None else self._turns.turn(self._owner(request)):
            with self._counts:
                self._working += 1
            try:
                yield
            finally:
                with self._counts:
                    self._working -= 1

    def use(self) -> Use:
        refused = 0 if self._turns is None else self._turns.refused
        with self._counts:
            return Use(self._working, self._calls - self._working, self._refused + refused)


def _too_many_of_owner(share: Share) -> errors.Refused:
    limit = share.working + share.waiting
    return errors.exhausted(
        "RATE_LIMITED",
        "Too many requests of this kind at the same time",
        limit=str(limit),
        retry_after_seconds=str(OWNER_RETRY_SECONDS),
    )


def _count_from_the_start(name: str) -> None:
    """Creates the counters at 0, so that the first refusal is an increase."""
    for reason in (FULL, OWNER):
        REFUSED.labels(name, reason)


class Turns:
    """The turns of a kind: which calls work now. Owners that wait take turns in a circle, one call each.

    name     of the kind, in the metrics
    threads  calls of all owners in work at the same time, where the share does not limit them
    """

    def __init__(self, name: str, share: Share, *, threads: int) -> None:
        self._name = name
        self._share = share
        self._in_all = share.in_all or threads
        self._lock = threading.Lock()
        self.refused = 0
        self._working = 0
        self._working_of: Counter[str] = Counter()
        self._waiting: dict[str, deque[threading.Event]] = {}  # the owner whose turn is next comes first

    @contextmanager
    def turn(self, owner: str) -> Iterator[None]:
        """Runs the block as the work. Raises `Refused` when no turn comes: RATE_LIMITED when the owner has other calls
        in work or waiting, DB_UNAVAILABLE when only other owners have.
        """
        if not self._enter(owner):
            raise self._refusal(owner)
        try:
            yield
        finally:
            self._leave(owner)

    def _refusal(self, owner: str) -> errors.Refused:
        with self._lock:
            self.refused += 1
            has_others = self._working_of[owner] > 0 or owner in self._waiting
        REFUSED.labels(self._name, OWNER if has_others else FULL).inc()
        return _too_many_of_owner(self._share) if has_others else errors.database_unavailable()

    def _enter(self, owner: str) -> bool:
        """Waits for a turn, as long as the share and the deadline allow; returns whether it came."""
        with self._lock:
            queue = self._waiting.get(owner)
            if not queue and self._may_work(owner):
                self._begin(owner)
                return True
            if len(queue or ()) >= self._share.waiting:
                return False
            turn = threading.Event()
            self._waiting.setdefault(owner, deque()).append(turn)
        left_seconds = deadline.remaining_seconds()
        most_seconds = self._share.wait_seconds
        if turn.wait(most_seconds if left_seconds is None else max(0.0, min(left_seconds, most_seconds))):
            return True
        with self._lock:
            if turn.is_set():
                return True
            self._waiting[owner].remove(turn)
            self._forget_if_empty(owner)
            return False

    def _leave(self, owner: str) -> None:
        with self._lock:
            self._working -= 1
            self._working_of[owner] -= 1
            if not self._working_of[owner]:
                del self._working_of[owner]
            self._give_turns()

    def _may_work(self, owner: str) -> bool:
        return self._working < self._in_all and self._working_of[owner] < self._share.working

    def _begin(self, owner: str) -> None:
        self._working += 1
        self._working_of[owner] += 1

    def _give_turns(self) -> None:
        for owner in list(self._waiting):
            if self._may_work(owner):
                queue = self._waiting.pop(owner)
                self._begin(owner)
                queue.popleft().set()
                self._waiting[owner] = queue  # to the end of the circle
                self._forget_if_empty(owner)

    def _forget_if_empty(self, owner: str) -> None:
        if not self._waiting[owner]:
            del self._waiting[owner]
