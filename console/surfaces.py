"""The two surfaces: the desk of operators and the dashboard of a merchant's members."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from console.config import ConsoleSettings, DeskSettings
from fiatgate.accounts.v1 import accounts_pb2 as pb


@dataclass(frozen=True)
class Surface:
    """A place where people sign in.

    name   part of the cookie's name
    title  of the pages
    kind   as accounts knows it
    roles  that its people may have, and what each may do
    """

    name: str
    title: str
    kind: pb.Surface.ValueType
    roles: Mapping[str, str]

    @property
    def has_merchants(self) -> bool:
        """Whether each session acts for one merchant."""
        return self.kind == pb.SURFACE_DASHBOARD


DESK: Final = Surface(
    "desk",
    "Fiatgate desk",
    pb.SURFACE_DESK,
    {
        "viewer": "reads the working lists; changes nothing, exports nothing",
        "desk": "deals, cases, requisites",
        "treasury": "withdrawals, corrections",
        "prices": "currencies, methods, rates",
        "admin": "merchants, people, and what desk, treasury and prices may do",
        "auditor": "reads everything, the audit log too, and exports it",
    },
)
DASHBOARD: Final = Surface(
    "dashboard",
    "Fiatgate dashboard",
    pb.SURFACE_DASHBOARD,
    {
        "owner": "members, and what the other roles may do",
        "developer": "API keys, webhooks and their addresses",
        "finance": "balance, withdrawals, and the addresses that they go to",
        "viewer": "reads; changes nothing",
    },
)


def surface_of(settings: ConsoleSettings) -> Surface:
    """Returns the surface that a process with these settings serves."""
    return DESK if isinstance(settings, DeskSettings) else DASHBOARD
