"""Withdrawals by members of the merchant: their address book, and requests to an address of it."""
