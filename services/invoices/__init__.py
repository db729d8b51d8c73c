"""Invoices, their deals and the requisites that customers pay to.

Owns: invoices, deals and their history (docs/api.md#states), requisites with their capacity,
the expiry of all of them, and the switch behind DEALS_SYSTEM_DISABLED.
Announces: `fiatgate.invoices.finished`, once per invoice, in the transaction that made it terminal.
Calls: catalog (currencies, methods, a quote when a method is chosen), identity (the invoice's merchant).
Does not own: rates and commissions (catalog), balances (withdrawals), webhooks, and the merchants' access.
"""
