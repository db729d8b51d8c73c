"""Webhook events, their attempts, and the engine that delivers them.

Owns: one event per terminal invoice that has a callback URL, with the exact bytes of its body (docs/api.md#events);
every attempt to deliver it; the retry schedule, the manual resend and the history.
Consumes: `fiatgate.invoices.finished`. Announces nothing.
Calls: identity, for signing secrets and default addresses of merchants.
Does not own: invoices and their merchants (callers check these with invoices first), keys and secrets (identity),
the rules for addresses that may be called (kit.egress).
"""
