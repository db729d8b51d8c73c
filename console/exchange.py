"""One request of a person: `kit.web.exchange` with the session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.web import exchange
from kit.web.exchange import SCOPE_KEY


@dataclass(slots=True)
class Exchange(exchange.Exchange):
    """One request on its way, with the session of its person.

    unattended     an open page sent the request by itself
    session_token  the cookie's; empty: none was sent
    session        the person, session and actor token that accounts returned for it
    merchant_name  of the session's merchant, for a member of several: the top of each page shows it
    """

    unattended: bool = False
    session_token: str = ""
    session: pb.AuthorizeResponse | None = None
    merchant_name: str = ""

    @property
    def signed_in(self) -> pb.AuthorizeResponse:
        """The session of a route that needs one."""
        if self.session is None:
            raise LookupError("this route is served without a session")
        return self.session

    def log_fields(self) -> Mapping[str, str]:
        return {
            "person_id": self.session.person.person_id if self.session else "",
            "session_id": self.session.session_id if self.session else "",
        }


class Request(exchange.Request):
    """Falcon's request, with the console's `Exchange`."""

    @property
    def exchange(self) -> Exchange:
        return cast(Exchange, self.scope[SCOPE_KEY])

    @property
    def client(self) -> pb.Client:
        """The browser, as the list of sessions shows it, and the network under which it is counted."""
        user_agent = (self.get_header("User-Agent") or "")[:256]
        return pb.Client(address=self.remote_addr or "", user_agent=user_agent, network=self.exchange.network)
