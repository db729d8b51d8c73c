"""Facts that travel from one service to others through NATS JetStream.

The producer writes a signed fact into its `outbox` in the transaction that makes it true; `relay` publishes it over the
`bus`. A `consumer` verifies it (`signing`, `proof`) and takes it in once (`inbox`); a fact that can't take effect is
retried later (`putoff`) or parked for an operator (`parked`).
"""
