"""The gRPC servicers: message -> operation -> message. kit's server translates errors.

- `sign_in`: from an invitation, a password or a passkey to a session
- `own_account`: the person's own factors and sessions
- `people`: people, roles and invitations
- `for_services`: keys of actor tokens, heads of chains of acts, e-mails about what other services know
- `merchants`: owners, merchants, categories, API keys
- `converters`, `merchant_converters`: values to messages, and back
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc

from fiatgate.accounts.v1 import accounts_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.base import actors
from kit.rpc import approvals, books, callers, find, queues
from kit.rpc.actors import parts
from kit.rpc.approvals import Approvable
from kit.rpc.find import ForAdmins
from kit.rpc.methods import serve
from kit.rpc.slots import Slots, of_people, proofs
from kit.rpc.turns import Parts, Share
from services.identity.operations.invitations import (
    invite_approved,
    invite_terms,
    recovery_approved,
    recovery_terms,
)
from services.identity.operations.people import (
    ENABLE,
    INVITE,
    RECOVER,
    ROLES,
    enable_approved,
    enable_terms,
    roles_approved,
    roles_terms,
)
from services.identity.rpc import for_services, merchants, own_account, people, sign_in
from services.identity.rpc.converters import FROM_MESSAGE
from services.identity.store.books import parts as parts_of_books
from services.identity.store.finding import IDS, IDS_OF_PEOPLE, SEARCHES, SEARCHES_OF_PEOPLE
from services.identity.store.queues import QUEUES
from services.identity.wiring import Deps


def _surface_of(request: Any) -> str:
    """Returns the surface that sends the request: as its certificate says; without TLS as the request or its author
    says.
    """
    caller = callers.current()
    if caller is not None:
        return caller
    return str(getattr(request, "surface", None) or actors.current().surface)


def _sender_of(request: Any) -> Parts:
    """Returns the merchant and the person; before the person is known, the client's network and the session, or in a
    known network the e-mail address and the network.
    """
    actor = actors.current()
    if actor.kind == "person":
        return parts(actor)
    if getattr(request, "known_network", False):
        return request.email.strip().lower(), request.client.network
    client = getattr(request, "client", None)
    return "" if client is None else client.network, getattr(request, "session_token", "")


_STRANGER: Final = "stranger"


def _surface_and_work_of(request: Any) -> str:
    if isinstance(request, accounts_pb2.SetPasswordRequest):
        work = "password"
    else:
        work = "known" if request.known_network else _STRANGER
    return f"{_surface_of(request)} {work}"


def _is_stranger(owner: str) -> bool:
    return owner.endswith(_STRANGER)


def _shared(
    name: str,
    *,
    in_all: int,
    working: int,
    waiting: int,
    owners: int,
    owner: Callable[[Any], str] = _surface_of,
    last: Callable[[str], bool] = lambda _owner: False,
) -> Slots:
    """Returns a kind whose surfaces take turns: strangers at the dashboard's sign-in take no place of the desk. On a
    surface merchants and networks take turns, and in these people and sessions.

    in_all            calls in work at the same time
    working, waiting  of them in work, and besides them waiting for a turn, for one owner
    owners            so many find a thread to wait in
    last              whether an owner's calls come last (`Share`)
    """
    share = Share(working=working, waiting=waiting, wait_seconds=3, in_all=in_all, last=last)
    return Slots(name=name, threads=owners * (working + waiting), owner=owner, parts=_sender_of, share=share)


# Each request of a signed-in person waits for Authorize. A password costs a tenth of a second and 64 MiB, so two are
# worked on at the same time. Strangers come last, one of each surface at a time: people who set a password, and people
# in a network that is known for them, wait for one guess at most.
SLOTS: Final = (
    _shared("sessions", in_all=3, working=2, waiting=62, owners=2),
    _shared("networks", in_all=1, working=1, waiting=63, owners=2),
    _shared(
        "passwords",
        in_all=2,
        working=1,
        waiting=7,
        owners=6,
        owner=_surface_and_work_of,
        last=_is_stranger,
    ),
    _shared("sign_ins", in_all=2, working=1, waiting=15, owners=2),
    _shared("people", in_all=3, working=2, waiting=10, owners=3),
    proofs(),
    Slots(name="actor_keys", threads=1),
    Slots(name="notices", threads=1),
    Slots(name="heads", threads=1),
    # Every merchant's request waits for Authenticate: many such calls must not stop the pages, nor the pages stop them.
    Slots(name="keys", waiting=160),
    of_people("services", working=2, waiting=64),
    of_people("logos", working=1),
    of_people("desk", working=2),
    # Calls that wait for the end of a lease (operations/leases.py): each occupies a thread for a second and a
    # connection for a moment. The last that waits begins in time to answer within its caller's 5 seconds. An operator
    # closes a leaked key in places of its own.
    of_people("leases", working=8, waiting=16, in_all=16, arriving=256, threads_per_connection=8),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    INVITE: Approvable(change=invite_approved, terms=invite_terms, role="admin"),
    RECOVER: Approvable(change=recovery_approved, terms=recovery_terms, role="admin"),
    ROLES: Approvable(change=roles_approved, terms=roles_terms, role="admin"),
    ENABLE: Approvable(change=enable_approved, terms=enable_terms, role="admin"),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    """Registers all servicers of this service."""
    served = {
        "SignInService": sign_in.METHODS,
        "OwnAccountService": own_account.METHODS,
        "PeopleService": people.METHODS,
        "ActorKeysService": for_services.ACTOR_KEYS,
        "HeadsService": for_services.HEADS,
        "NoticesService": for_services.NOTICES,
    }
    for name, methods in served.items():
        serve(server, accounts_pb2.DESCRIPTOR.services_by_name[name], deps, methods, FROM_MESSAGE)
    serve(server, merchants_pb2.DESCRIPTOR.services_by_name["MerchantsService"], deps, merchants.METHODS)
    find.add_to(server, deps.db, IDS, SEARCHES, for_admins=ForAdmins(IDS_OF_PEOPLE, SEARCHES_OF_PEOPLE))
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
    books.add_to(server, deps.db, parts_of_books(deps.key_vault))
    queues.add_to(server, deps, QUEUES)
