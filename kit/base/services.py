"""The names of the gRPC services, apart from their settings: those take a third of a command's time to import."""

from typing import Final

SERVICES: Final = ("merchants", "catalog", "invoices", "withdrawals", "webhooks", "accounts")
"""Each is a folder of services/ and has a database of its own."""
