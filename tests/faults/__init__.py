"""`make faults`: a whole stack under load while its processes are killed, stopped and cut off; then the books are read.

It lives in tests/ because it is one: it starts the stack with what the other tests start theirs with, asserts, and
its short version runs with them. `python -m tests.faults` is the long one, for as many seeds as one has time for.

- `plan`      which faults, in which order: pure, all from one seed
- `arena`     the stack with a proxy in each of its connections, and the hand that does the faults
- `proxy`     those connections, to cut and to hold
- `triggers`  rows that PostgreSQL refuses once
- `journal`   what the clients were answered and what the receiver got: append-only files
- `shoppers`  the load: purchases of every kind, each step repeated until somebody answers
- `people`    sessions at desk and dashboard: none ends by a fault, and none that was ended works again
- `trade`     one quiet purchase, for what is not about load
- `checker`   reads PostgreSQL and the journals, nothing else, and says what is wrong
- `rounds`    one seed after the other: load, faults, calm, check

The load follows its seed only as far as the machine's own timing lets it: the same seed does the same faults and the
same purchases, not in the same microsecond.
"""
