"""Statements of merchants: every transfer of the ledger in a month, with the balance after each."""
