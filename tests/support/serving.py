"""Services in this process, on real ports and real databases: for tests of one service that calls others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import grpc

from kit.rpc.client import channel
from kit.rpc.permissions import Checks
from kit.rpc.server import Options, RpcServer
from kit.rpc.slots import Slots

D = TypeVar("D")

TEST_MASTER_KEY = "A" * 43 + "="


@contextmanager
def serving(
    add_to: Callable[[grpc.Server, D], None],
    deps: D,
    *,
    service: str = "",
    threads: int = 4,
    slots: Sequence[Slots] = (),
    checks: Checks | None = None,
) -> Iterator[str]:
    """Serve what `add_to` registers until the block ends; gives its address."""
    server = RpcServer(Options(service=service, threads=threads, slots=slots, checks=checks))
    add_to(server, deps)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(1).wait(5)


@contextmanager
def connected(address: str) -> Iterator[grpc.Channel]:
    """A channel for stubs, closed at the end."""
    opened = channel(address, name="under test")
    try:
        yield opened
    finally:
        opened.close()
