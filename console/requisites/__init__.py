"""Requisites: the accounts that customers pay to, their load, their deals and their history."""
