"""Tools that two or more of Fiatgate's processes use.

They have no business rules: no state, price or right of a merchant.

The rooms, each of which imports itself and those above it (tests/test_rooms.py):

    base      time, ids, money, settings, certificates, pictures
    observe   logs, metrics, traces
    work      threads and tasks that must not end, pauses after failures
    egress    vetted calls to addresses that others chose
    db        the database: sessions, migrations, rights, the records of what was written
    audit     acts: written with the change, chained, verified; requests for a second person
    events    facts between services: outbox, relay, bus, signatures, consumer, inbox, parked events
    rpc       gRPC on both sides: errors, deadlines, kinds of calls, TLS, status
    process   the main program of a service
    web       the HTTP server and its connections, one request on its way, pages, forms, files, live pages, walls

Nothing happens when one of them is imported.
"""
