"""Balances in USDT and withdrawals.

Owns: the double-entry ledger (DESIGN section 4, Ledger), withdrawal methods and their addresses, withdrawals (SPEC,
Withdrawal status; endpoints 8 and 9).
Consumes: `fiatgate.invoices.finished`, from which it credits each successful invoice exactly once.
Announces nothing and calls nobody.
Does not own: what an invoice is worth (invoices) and who may call (merchants, gateway). It sends nothing to a
blockchain: an operator does, and tells the outcome.
"""
