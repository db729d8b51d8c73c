"""The delivery engine: three stages with typed hand-overs (store/stages.py), bounded at each.

    take    a new event, usually without a claim           Shipment   fresh.py, secrets.py, taking.py
    claim   due events, in batches, under a lease          Claimed    engine.py, store/claims.py
            with the present secret                        Shipment   engine.py, clients.py
    send    one request each, if its seal is right         Outcome    lanes.py, seals.py, sender.py, courier.py
    record  verdicts and attempts, in batches, fenced      Recorded   record.py, store/claims.py

A claim is a lease (`lease_until`) under a token. No transaction is open while a request is under way. When a
process dies between claim and record, its lease runs out and the event is due again. A result is written only where the
event still carries the token of the claim, so a worker whose lease ran out can't overwrite a later worker's result.
"""
