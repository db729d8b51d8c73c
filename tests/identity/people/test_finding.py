"""The search of the service over a real socket: readers find merchants, and admins alone find people too."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context

import pytest

from fiatgate.find.v1 import find_pb2 as pb
from fiatgate.find.v1.find_pb2_grpc import FindServiceStub
from kit.rpc import actors as rpc_actors
from kit.rpc.actors import carry_token
from kit.rpc.errors import Refused
from kit.rpc.permissions import Checks
from services.identity import rpc
from services.identity.domain.people import Surface
from services.identity.operations import keys, merchants, sessions
from services.identity.operations.merchants import MerchantOptions
from services.identity.wiring import Deps
from tests.identity.people.house import Someone, operator
from tests.support.serving import connected, serving


def test_a_reader_finds_merchants_and_an_admin_alone_people_too(
    deps: Deps, new_email: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_actors, "_carried_by_process", ())
    email = new_email()
    merchants.create_merchant(deps, owner_email=email, active=True, options=MerchantOptions(name="Lamps"))
    admin, viewer = operator(deps, email, "admin"), operator(deps, new_email(), "viewer")
    checks = Checks(keys=keys.OwnKeys(deps), clock=deps.clock)
    with (
        serving(rpc.add_to, deps, service="identity", slots=rpc.SLOTS, checks=checks) as address,
        connected(address) as channel,
    ):
        stub = FindServiceStub(channel)

        def kinds(someone: Someone) -> set[str]:
            authorized = sessions.authorize(
                deps, session_token=someone.token, surface=Surface.DESK, unattended=False
            )
            carry_token(authorized.actor_token)
            by_email, by_id = (
                stub.Find(pb.FindRequest(text=text)).found for text in (email, str(admin.person_id))
            )
            return {each.kind for each in (*by_email, *by_id)}

        assert copy_context().run(kinds, viewer) == {"merchant"}
        assert copy_context().run(kinds, admin) == {"merchant", "person"}

        def completed(someone: Someone) -> None:
            authorized = sessions.authorize(
                deps, session_token=someone.token, surface=Surface.DESK, unattended=False
            )
            carry_token(authorized.actor_token)
            stub.CompleteId(pb.CompleteIdRequest(kind="person", beginning=str(admin.person_id)[:8]))

        copy_context().run(completed, admin)
        with pytest.raises(Refused, match="Expected one of merchant, key"):
            copy_context().run(completed, viewer)
