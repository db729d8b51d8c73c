"""Webhooks of all merchants with their attempts, and parked events of all services."""
