"""The bounds that client and server of a call share: the least time of use, and the largest message."""

from typing import Final

LEAST_USEFUL_SECONDS: Final = 0.01
"""A call with less time than this would finish after its caller stopped waiting."""

OUTWARD_CALL_SECONDS: Final = 30
"""A call that waits for a server of others. Its caller waits as long, and the service that asks that server in the call
lets nobody set a longer time for it.
"""

MESSAGE_MAX_BYTES: Final = 16 * 1024 * 1024
"""gRPC's own 4 MiB are less than a page of 500 invoices, each with three URLs of 2048 characters, can have."""
