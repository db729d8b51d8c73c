"""TCP connections that can be cut, held, and robbed of their answers: Twisted's port forwarder, and what befalls it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, Self

from twisted.internet import reactor as _reactor
from twisted.internet.protocol import connectionDone
from twisted.internet.threads import blockingCallFromThread
from twisted.protocols import portforward

from deploy.local.ports import free_ports

reactor: Final[Any] = _reactor  # its module stands for whichever loop the system has; no type says so


class _End(portforward.Proxy):
    """One of a connection's two halves: what each does with what it hears."""

    peer: Any
    transport: Any
    link: Link

    def connectionMade(self) -> None:
        self.transport.setTcpNoDelay(True)
        self.link.open.add(self)
        super().connectionMade()  # type: ignore[no-untyped-call]

    def dataReceived(self, data: bytes) -> None:
        self.link.now_or_later(partial(self._pass_on, data))

    def connectionLost(self, reason: Any = connectionDone) -> None:
        self.link.open.discard(self)
        self.link.now_or_later(partial(super().connectionLost, reason))

    def _pass_on(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.transport.write(data)


class _Server(_End, portforward.ProxyClient):
    """Where the answers come from."""

    @property
    def link(self) -> Link:  # type: ignore[override]
        return self.factory.server.link  # type: ignore[attr-defined, no-any-return]

    def _pass_on(self, data: bytes) -> None:
        if not self.link.loses_answers:
            super()._pass_on(data)


class _ServerFactory(portforward.ProxyClientFactory):
    protocol = _Server
    noisy = False


class _Client(_End, portforward.ProxyServer):
    """Where the questions come from."""

    clientProtocolFactory = _ServerFactory
    reactor = reactor

    @property
    def link(self) -> Link:  # type: ignore[override]
        return self.factory  # type: ignore[return-value]

    def connectionMade(self) -> None:
        try:
            self.link.port = self.link.upstream()
        except OSError:  # it is being restarted: the client sees what it would have seen without us
            self.transport.abortConnection()
        else:
            super().connectionMade()


class Link(portforward.ProxyFactory):
    """One loopback port; each connection to it is joined to one to `upstream()`, a port asked for each time."""

    protocol = _Client
    noisy = False

    def __init__(self, upstream: Callable[[], int]) -> None:
        super().__init__("127.0.0.1", 0)
        self.upstream = upstream
        self.open: set[_End] = set()
        self.loses_answers = False
        self.near_port = free_ports(1)[0]
        self._socket = socket.create_server(("127.0.0.1", self.near_port))  # nobody takes it meanwhile
        self._socket.setblocking(False)
        self._held: list[Callable[[], None]] | None = None
        self._listening: Any = None

    def listen(self) -> None:
        self._listening = reactor.adoptStreamPort(self._socket.fileno(), socket.AF_INET, self)
        self._socket.close()

    def end(self) -> Any:
        self.cut()
        return self.refuse()

    def refuse(self) -> Any:
        """Refuse new connections, as a machine does whose server does not run; those that are open stay so."""
        listening, self._listening = self._listening, None
        return listening and listening.stopListening()

    def welcome(self) -> None:
        """Take new connections again."""
        if self._listening is None:
            self._listening = reactor.listenTCP(self.near_port, self, interface="127.0.0.1")

    def cut(self) -> None:
        """Reset every connection; new ones are welcome."""
        self.loses_answers = False
        for each in list(self.open):
            each.transport.abortConnection()

    def hold(self) -> None:
        """Move nothing until `flow`, and let nobody know of an end; what comes meanwhile is kept, in memory."""
        if self._held is None:
            self._held = []

    def flow(self) -> None:
        held, self._held = self._held or [], None
        for each in held:
            each()

    def lose_answers(self) -> None:
        """Carry on what is asked and nothing of what is answered, until `cut`: done, and nobody learns of it."""
        self.loses_answers = True

    def now_or_later(self, happen: Callable[[], None]) -> None:
        if self._held is None:
            happen()
        else:
            self._held.append(happen)


@cache
def _running() -> threading.Thread:
    """Twisted's loop, in a thread of its own: there is one in a process, and it can be started once."""
    thread = threading.Thread(
        target=reactor.run, kwargs={"installSignalHandlers": False}, name="proxies", daemon=True
    )
    thread.start()
    return thread


class Proxies:
    """All links of a stack. Use as a context manager. What is told has happened when the call returns."""

    def __init__(self, upstreams: dict[str, Callable[[], int]]) -> None:
        self._links = {name: Link(upstream) for name, upstream in upstreams.items()}

    def __enter__(self) -> Self:
        _running()
        for link in self._links.values():
            blockingCallFromThread(reactor, link.listen)
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._links.values():
            blockingCallFromThread(reactor, link.end)

    def port(self, name: str) -> int:
        return self._links[name].near_port

    def cut(self, name: str) -> None:
        blockingCallFromThread(reactor, self._links[name].cut)

    def hold(self, name: str) -> None:
        blockingCallFromThread(reactor, self._links[name].hold)

    def flow(self, name: str) -> None:
        blockingCallFromThread(reactor, self._links[name].flow)

    def refuse(self, name: str) -> None:
        blockingCallFromThread(reactor, self._links[name].refuse)

    def welcome(self, name: str) -> None:
        blockingCallFromThread(reactor, self._links[name].welcome)

    def lose_answers(self, name: str) -> None:
        blockingCallFromThread(reactor, self._links[name].lose_answers)
