"""Tools that two or more of Fiatgate's processes use; no business word lives here.

What it owns: time, ids and money (`clock`, `ids`, `money`); the database and its migrations (`db`,
`migrate`); facts that travel between services (`outbox`, `relay`, `bus`, `consumer`, `inbox`); the threads
that carry all of it (`worker`); the process, its settings and its logs (`process`, `config`, `log`); gRPC on
both sides (`rpc`, `errors`).

What it does not own: any rule of docs/api.md. It imports no service, only `fiatgate.errors.v1` and
`fiatgate.status.v1` from the contracts, and nothing happens when it is imported.
"""
