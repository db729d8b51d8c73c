"""Webhook events, their attempts, and the engine that delivers them.

Owns: one event per terminal invoice that has a callback URL, with the exact bytes of its body (docs/api.md#events);
every attempt to deliver it; the retry schedule, the manual resend and the history.
Consumes: `fiatgate.invoices.finished`. Announces nothing.
Calls: merchants, for the secrets that sign.
Does not own: which invoices exist and whose they are (callers ask invoices first), keys and secrets (merchants),
which addresses may be called (kit.egress).
"""
