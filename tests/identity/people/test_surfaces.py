"""The certificate of a console opens its own surface: identity over real connections with mTLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final

import pytest

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc as pb_grpc
from kit.base.ids import new_id
from kit.base.tls import Identity
from kit.rpc import actors as rpc_actors
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.rpc.permissions import Checks
from kit.rpc.server import Options, RpcServer
from services.identity import rpc
from services.identity.domain.people import Surface
from services.identity.wiring import Deps
from tests.identity.people.house import Someone, accept, invite_member, invite_staff
from tests.support.certificates import Authority

CONSOLES: Final = {Surface.DESK: "console-desk", Surface.DASHBOARD: "console-dashboard"}
NUMBERS: Final = {Surface.DESK: pb.SURFACE_DESK, Surface.DASHBOARD: pb.SURFACE_DASHBOARD}
OTHER: Final = {Surface.DESK: Surface.DASHBOARD, Surface.DASHBOARD: Surface.DESK}
ON_A_SURFACE: Final = {
    each.name: each.input_type.name
    for each in pb.DESCRIPTOR.services_by_name["SignInService"].methods
    if "surface" in each.input_type.fields_by_name
}


@pytest.fixture
def consoles(
    deps: Deps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[Surface, pb_grpc.SignInServiceStub]]:
    """SignInService, called with the certificate of each console."""
    monkeypatch.setattr(rpc_actors, "_carried_by_process", ())  # a console names no operator
    authority = Authority()
    server = RpcServer(
        Options(
            identity=Identity(authority.issue(tmp_path / "identity", "identity")),
            service="identity",
            slots=rpc.SLOTS,
            checks=Checks(clock=deps.clock),
        )
    )
    rpc.add_to(server, deps)
    address = f"127.0.0.1:{server.listen('127.0.0.1:0')}"
    server.start()
    opened = {
        surface: channel(address, name="identity", identity=Identity(authority.issue(tmp_path / name, name)))
        for surface, name in CONSOLES.items()
    }
    yield {surface: pb_grpc.SignInServiceStub(each) for surface, each in opened.items()}
    for each in opened.values():
        each.close()
    server.stop(0).wait(5)


def person_of(deps: Deps, surface: Surface, email: str) -> Someone:
    made = invite_staff(deps, email) if surface is Surface.DESK else invite_member(deps, email, new_id())
    return Someone(deps, email, accept(deps, made, surface), surface)


def refusal(call: Callable[[], Any]) -> tuple[str, dict[str, str]]:
    """The reason and its metadata; empty when the call was answered."""

    def do() -> tuple[str, dict[str, str]]:
        rpc_actors._carried.set(())
        try:
            call()
        except Refused as refused:
            return refused.reason, dict(refused.metadata)
        return "", {}

    return copy_context().run(do)


@pytest.mark.parametrize("own", list(CONSOLES))
def test_a_console_signs_nobody_in_on_the_other_surface(
    consoles: dict[Surface, pb_grpc.SignInServiceStub],
    deps: Deps,
    new_email: Callable[[], str],
    own: Surface,
) -> None:
    assert len(ON_A_SURFACE) > 7
    other = person_of(deps, OTHER[own], new_email())
    for method, message in ON_A_SURFACE.items():
        request = getattr(pb, message)(surface=NUMBERS[other.surface])
        if "session_token" in request.DESCRIPTOR.fields_by_name:
            request.session_token = other.token
        found = refusal(lambda method=method, request=request: getattr(consoles[own], method)(request))  # type: ignore[misc]
        assert found == ("ACTOR_INVALID", {"problem": "surface"}), method


@pytest.mark.parametrize("own", list(CONSOLES))
def test_a_console_ends_no_session_of_the_other_surface(
    consoles: dict[Surface, pb_grpc.SignInServiceStub],
    deps: Deps,
    new_email: Callable[[], str],
    own: Surface,
) -> None:
    other = person_of(deps, OTHER[own], new_email())
    sign_out = pb.SignOutRequest(session_token=other.token)
    authorize = pb.AuthorizeRequest(session_token=other.token, surface=NUMBERS[other.surface])
    assert refusal(lambda: consoles[own].SignOut(sign_out)) == ("", {})
    assert refusal(lambda: consoles[other.surface].Authorize(authorize)) == ("", {})
    assert refusal(lambda: consoles[other.surface].SignOut(sign_out)) == ("", {})
    assert refusal(lambda: consoles[other.surface].Authorize(authorize))[0] == "SESSION_INVALID"
