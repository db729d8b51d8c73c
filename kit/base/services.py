"""The names of the gRPC services, apart from their settings: those take a third of a command's time to import."""

from typing import Final

SERVICES: Final = ("identity", "catalog", "invoices", "withdrawals", "webhooks", "bank")
"""Each is a folder of services/ and has a database of its own."""
PACKAGES: Final = {"identity": ("accounts", "merchants")}
"""The packages of protos that a service serves, where they are not its name."""
