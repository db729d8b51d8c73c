"""Currencies, payment methods and rates.

Owns: currencies, payment methods, how a commission is split between client and merchant, every rate that was
ever in force with the sources it came from, and the rate that the jump guard holds back for an operator.
Announces: a hint on `fiatgate-hint.catalog` after every change, for the services that keep a snapshot; no durable fact.
Calls: no service; the configured rate sources over HTTP, through kit's vetted egress.
Does not own: merchants and their categories (identity; each request brings the merchant), the rate locked into a deal
(invoices), and balances.
"""
