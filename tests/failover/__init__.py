"""`make failover`: the primary of three PostgreSQL nodes is lost under load; then the books are read.

Patroni chooses the primary, as in most clusters of PostgreSQL that keep themselves. A commit is answered once a second
node has it (quorum, strict). Shoppers, proxies, journals and the checker are those of `tests/faults`.

- `patroni`    the three nodes: their configuration, their processes, what Patroni says of them
- `arena`      a whole stack on top of them, with a proxy before each node, and the hand that does the faults
- `events`     what befalls the primary, or NATS, by name
- `load`       purchases at a steady rate
- `witness`    writes at one node alone, whatever the others say: what does it accept?
- `figures`    what was answered when, and what of it is missing in the books: pure
- `rounds`     one event after the other: load, event, calm, check

`make failover` installs Patroni beside what the tests need; nothing here imports it.
"""
