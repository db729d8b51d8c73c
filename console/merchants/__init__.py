"""Merchants with their settings, keys and members; owners; categories."""
