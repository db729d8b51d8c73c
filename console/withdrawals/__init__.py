"""Withdrawals on both surfaces: the list, one with its history; at the desk its steps, and methods too."""
