"""Tools that two or more of Fiatgate's processes use. They know no merchant, invoice or deal.

The rooms, each of which imports only those above it (tests/test_architecture.py):

    base      time, ids, money, settings, certificates, pictures
    observe   logs, metrics, traces
    work      threads and tasks that must not end, pauses after failures
    egress    vetted calls to addresses that others chose
    db        the database: sessions, migrations, rights, the records of what was written
    events    facts between services: outbox, relay, bus, signatures, consumer, inbox, parked events
    rpc       gRPC on both sides: errors, deadlines, kinds of calls, TLS, status
    process   the main program of a service

Nothing happens when one of them is imported.
"""
