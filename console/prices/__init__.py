"""Currencies, payment methods and rates: the terms of new deals, and where their numbers come from."""
