"""A name server on loopback, and Python's own look-ups asking it: `socket.getaddrinfo` goes there over UDP."""

import socketserver
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import dns.message
import dns.resolver
import dns.rrset

TTL_SECONDS = 0


class NameServer:
    """Answers A, AAAA and CNAME questions from what it was told; silent where it was told to be."""

    def __init__(self) -> None:
        self._records: dict[str, deque[list[str]]] = {}
        self._silent: set[str] = set()
        self.asked: Counter[str] = Counter()

    def tell(self, name: str, *answers: Iterable[str]) -> None:
        """One answer after the other, the last one for ever; an answer is addresses and, ending in a dot, aliases."""
        self._records[name] = deque(list(each) for each in answers)

    def be_silent(self, name: str) -> None:
        self._silent.add(name)

    def answer(self, wire: bytes) -> bytes | None:
        query = dns.message.from_wire(wire)
        [question] = query.question
        name = question.name.to_text().removesuffix(".")
        kind = question.rdtype.name
        self.asked[name] += kind == "A"
        if name in self._silent:
            return None
        response = dns.message.make_response(query)
        response.answer.extend(self._sets(name, kind))
        return response.to_wire()

    def _sets(self, name: str, kind: str) -> Iterator[dns.rrset.RRset]:
        waiting = self._records.get(name, deque([[]]))
        # Both families are asked for, A first or last: an answer holds until A was asked for again.
        answer = waiting.popleft() if kind == "A" and len(waiting) > 1 else waiting[0]
        for record in answer:
            if record.endswith("."):
                yield dns.rrset.from_text(f"{name}.", TTL_SECONDS, "IN", "CNAME", record)
                yield from self._sets(record.removesuffix("."), kind)
        addresses = [each for each in answer if (":" in each) == (kind == "AAAA") and not each.endswith(".")]
        if addresses:
            yield dns.rrset.from_text(f"{name}.", TTL_SECONDS, "IN", kind, *addresses)


@contextmanager
def name_server() -> Iterator[NameServer]:
    """The machine's name server is this one inside the block."""
    names = NameServer()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            wire, reply_to = self.request
            if (answer := names.answer(wire)) is not None:
                reply_to.sendto(answer, self.client_address)

    with socketserver.ThreadingUDPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        resolver: Any = dns.resolver.Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], server.server_address[1]
        resolver.timeout = resolver.lifetime = 5.0
        dns.resolver.override_system_resolver(resolver)
        try:
            yield names
        finally:
            dns.resolver.restore_system_resolver()
            server.shutdown()
