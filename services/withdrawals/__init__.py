"""Balances in USDT and withdrawals.

Owns: the double-entry ledger (docs/decisions/0008-ledger-one-row-per-transfer.md), withdrawal methods,
merchants' address books, withdrawals.
Consumes: `fiatgate.invoices.finished`, from which it credits each successful invoice exactly once.
Announces nothing. Calls invoices, for the money of a deal that a correction or a refund is about; identity, before a
member adds an address or requests a withdrawal: a banned merchant starts nothing; and in the background, to have owners
told of new addresses by e-mail.
Does not own: the USDT value of an invoice (invoices) and the rights of callers (identity, gateway). It sends nothing
to a blockchain: an operator does, and enters the outcome.
"""
