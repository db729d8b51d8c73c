"""People of the tests: invited, signed in, with factors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

import pyotp
import pytest
from sqlalchemy import text

from kit.audit import acts
from kit.base import actors
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.rpc.approvals import ApprovalsServicer
from kit.rpc.errors import Refused
from services.identity.domain.people import Client, Surface
from services.identity.operations import accepting, factors, invitations, sessions, signing_in
from services.identity.operations.invitations import Invited
from services.identity.rpc import APPROVABLE
from services.identity.store import people
from services.identity.store.decisions import decided_admins
from services.identity.wiring import Deps
from tests.support.acting import BEN, Approvals

BROWSER = Client(address="192.0.2.7", user_agent="Browser", network="192.0.2.0/24")
PASSWORD = "tundra violin obelisk"


def client(address: str) -> Client:
    return Client(address=address, user_agent="Browser", network=network_of(address))


def network_of(address: str) -> str:
    """As a console with FIATGATE_CLIENT_IPV4_BITS=24 counts it."""
    return f"{address.rpartition('.')[0]}.0/24"


@contextmanager
def refused(reason: str) -> Iterator[None]:
    with pytest.raises(Refused) as caught:
        yield
    assert caught.value.reason == reason


def approvals_of(deps: Deps) -> Approvals:
    return Approvals(ApprovalsServicer("identity", deps, APPROVABLE))


def disable_admins(deps: Deps) -> None:
    """Disables each admin, as one who has left."""
    with deps.db.transaction() as tx, actors.acting(Actor(kind="cli", name="eve@laptop")):
        for id in decided_admins(tx):
            acts.record(tx, "person.disable", f"person:{id}")
        tx.execute(text("UPDATE people SET disabled_at = now() WHERE 'admin' = ANY (roles)"))


def invite_staff(deps: Deps, email: str, *roles: str) -> Invited:
    """An invitation to the desk, which another administrator approves where that is needed."""
    try:
        return invitations.invite_person(
            deps, email=email, name="Ada", roles=roles or ("desk",), merchant_id="", member_roles=()
        )
    except Refused as refused:
        if refused.reason != "APPROVAL_REQUIRED":
            raise
        link = approvals_of(deps).link(BEN, refused.metadata["approval_id"])
        made = invitations.list_invitations(deps, merchant_id="")
        return Invited(invitation=next(each for each in made if each.email == email), link=link)


def invite_member(deps: Deps, email: str, merchant_id: UUID, *roles: str) -> Invited:
    return invitations.invite_person(
        deps,
        email=email,
        name="Bob",
        roles=(),
        merchant_id=str(merchant_id),
        member_roles=roles or ("viewer",),
    )


def token_of(made: Invited) -> str:
    return made.link.rpartition("=")[2]


def mailing_to_nobody(deps: Deps) -> Deps:
    """The service with a mail server that is away: links stay in the table of mails."""
    return replace(deps, settings=deps.settings.model_copy(update={"smtp_url": "smtp://127.0.0.1:1"}))


def mailed(deps: Deps, made: Invited) -> Invited:
    """The invitation with the link of its e-mail, as the holder of the mailbox reads it."""
    assert made.link == ""
    with deps.db.transaction() as tx:
        query = text("SELECT sealed_link FROM mails WHERE invitation_id = :id")
        sealed = tx.execute(query, {"id": made.invitation.id}).scalar_one()
    return replace(made, link=deps.vault.open(bytes(sealed)).decode())


def accept(deps: Deps, made: Invited, surface: Surface = Surface.DESK) -> str:
    return accepting.accept_invitation(deps, token=token_of(made), surface=surface, client=BROWSER)


@dataclass
class Someone:
    """A person who is signed in on a surface."""

    deps: Deps
    email: str
    token: str
    surface: Surface
    secret: str = ""

    @property
    def actor(self) -> Actor:
        with self.deps.db.transaction() as tx:
            return sessions.signed_in_by(self.deps, tx, self.token, self.surface).actor

    @property
    def person_id(self) -> UUID:
        with self.deps.db.transaction() as tx:
            person = people.person_by_email(tx, self.email)
        assert person is not None
        return person.id

    @contextmanager
    def acting(self) -> Iterator[None]:
        with actors.acting(self.actor):
            yield

    def code(self) -> str:
        return pyotp.TOTP(self.secret).at(self.deps.clock.now())

    def add_password_and_totp(self) -> None:
        with self.acting():
            factors.set_password(self.deps, password=PASSWORD)
            self.secret, _ = factors.start_totp(self.deps)
            factors.confirm_totp(self.deps, code=self.code())

    def recovery_codes(self) -> list[str]:
        with self.acting():
            return factors.make_recovery_codes(self.deps)

    def sign_in(
        self, *, password: str = PASSWORD, code: str | None = None, address: str = "192.0.2.7"
    ) -> str:
        return signing_in.sign_in_by_password(
            self.deps,
            email=self.email,
            password=password,
            code=self.code() if code is None else code,
            surface=self.surface,
            client=client(address),
        )

    def step_up(self, *, code: str | None = None, address: str = "192.0.2.7") -> str:
        return signing_in.step_up(
            self.deps,
            session_token=self.token,
            surface=self.surface,
            client=client(address),
            code=self.code() if code is None else code,
        )


def operator(deps: Deps, email: str, *roles: str) -> Someone:
    return Someone(deps, email, accept(deps, invite_staff(deps, email, *roles)), Surface.DESK)


def member(deps: Deps, email: str, merchant_id: UUID, *roles: str) -> Someone:
    made = invite_member(deps, email, merchant_id, *roles)
    return Someone(deps, email, accept(deps, made, Surface.DASHBOARD), Surface.DASHBOARD)


def authorize(deps: Deps, token: str, surface: Surface = Surface.DESK) -> sessions.Authorized:
    return sessions.authorize(deps, session_token=token, surface=surface)


def owner_of(merchant_id: UUID) -> Actor:
    return Actor(
        kind="person",
        name="owner@shop.example",
        surface="dashboard",
        person_id=new_id(),
        session_id=new_id(),
        roles=frozenset({"owner"}),
        merchant_id=merchant_id,
    )


def acts_of(deps: Deps, object: str = "", *, act: str = "") -> list[tuple[str, str]]:
    """The name and the author of each act of an object, or of a name, in their order."""
    found = text(
        "SELECT act, actor_name FROM acts WHERE (:object = '' OR object = :object)"
        " AND (:act = '' OR act = :act) ORDER BY id"
    )
    with deps.db.transaction() as tx:
        return [(row.act, row.actor_name) for row in tx.execute(found, {"object": object, "act": act})]
