"""The schema, step by step (kit.migrate)."""

NEEDS = "0003"
"""What this version can't do without; what comes after is the next version's (docs/decisions/0025)."""
