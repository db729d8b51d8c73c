"""The embedded stack behind `make run`: real PostgreSQL, real NATS, the five services, the gateway and the console.

It owns the folder `FIATGATE_HOME` (`.fiatgate/`): data, secrets, logs, and `stack.json` with the addresses. It starts
and watches processes, and has no business rule. The demo seed goes through the services' own gRPC, like an operator's
commands.
"""
