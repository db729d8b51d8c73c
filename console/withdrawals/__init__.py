"""Payouts to merchants, from the request to the transaction, and their methods."""
