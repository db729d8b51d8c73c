"""Tools that two or more of Fiatgate's processes use. No business rule is here.

kit owns: time, ids and money (`clock`, `ids`, `money`); the database and its migrations (`db`, `migrate`); facts that
travel between services (`outbox`, `relay`, `bus`, `consumer`, `inbox`); the threads that run all of it (`worker`); the
process, its settings and its logs (`process`, `config`, `log`); gRPC on both sides (`rpc`, `errors`).

kit does not own any rule of docs/api.md. It imports no service, only `fiatgate.errors.v1` and `fiatgate.status.v1` from
the contracts, and nothing happens when it is imported.
"""
