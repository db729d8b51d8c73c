"""Payouts to merchants, from the request to the transaction; their methods; the statement of a merchant's ledger."""
