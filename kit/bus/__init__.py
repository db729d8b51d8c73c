"""NATS: one connection per process, used from threads; the stream that holds the facts; hints that may get
lost.

PostgreSQL is the truth: everything in NATS may be lost and is announced anew (`kit.relay`);
docs/reliability.md#how-the-chain-holds lists the cases.

- `messages`: what goes out and comes in, and what can go wrong
- `connection`: `Bus`, the connection: it starts without NATS, connects when it can, makes the stream when it
is gone
- `client`: nats-py's, with TLS where it was asked for
- `listening`: listeners of hints, and how often a flood of hints calls them
- `pull`: `Pull`, the deliveries to one durable consumer
- `loop`: the asyncio loop in a thread that both live on
"""

from kit.bus.connection import Bus
from kit.bus.messages import STREAM, BusClosed, BusUnavailable, Incoming, Outgoing, processing
from kit.bus.pull import Pull

__all__ = ["STREAM", "Bus", "BusClosed", "BusUnavailable", "Incoming", "Outgoing", "Pull", "processing"]
