"""Parked events: what the services could not handle, for operators."""
