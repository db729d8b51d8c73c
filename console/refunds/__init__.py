"""Refunds: fiat that goes back to customers."""
