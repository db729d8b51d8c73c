"""NATS: one connection per process, used from threads; the stream that holds the facts; hints that may get lost.

PostgreSQL is the truth: everything in NATS may be lost and is published again (`kit.events.relay`);
docs/reliability.md#how-the-chain-holds lists the cases.

- `messages`: incoming and outgoing messages, and the errors
- `connection`: `Bus`, the connection: it starts without NATS and connects when it can
- `stream`: `OwnStream`, the stream and its consumers, which their owner makes when they are missing
- `client`: nats-py's client, which insists on TLS for an address tls://…
- `listening`: listeners of hints, and how often a flood of hints calls them
- `pull`: `Pull`, the deliveries to one durable consumer
- `loop`: the asyncio loop in a thread, on which `connection` and `pull` run
"""
