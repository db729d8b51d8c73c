"""The delivery engine: three stages with typed hand-overs, bounded at each.

    claim   due events, in batches, under a lease          Claimed    engine.py, store/claims.py
            with the secret of this moment                 Shipment   engine.py, clients.py
    send    one request each, bounded per destination      Outcome    lanes.py, sender.py, courier.py, spans.py
    record  verdicts and attempts, in batches, fenced      Recorded   record.py, store/claims.py

A claim is a lease (`lease_until`) under a token. No transaction is open while a request is under way; whoever dies
between claim and record leaves a lease that runs out, and the event is due again. A result is written only where the
event still carries the token of the claim, so a worker that slept through its lease can't overwrite what a later one
did (DESIGN section 3; convoy and river in STYLE.md).
"""
