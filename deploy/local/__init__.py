"""The embedded stack behind `make run`: real PostgreSQL, real NATS, the five services and the gateway.

Owns the folder `FIATGATE_HOME` (`.fiatgate/`): data, secrets, logs, and `stack.json`, which says where
everything is. Knows how processes are started and watched; knows nothing of the business beyond the demo
seed, which goes through the services' own gRPC like any operator's command.
"""
