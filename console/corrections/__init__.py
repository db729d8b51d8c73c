"""Corrections of merchants' balances, and what merchants owe."""
