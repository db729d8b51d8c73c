"""SignInService: from an invitation, a password or a passkey to a session."""

from typing import Any, Final

from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.base.proto import timestamp_from
from kit.rpc.methods import Methods, by_name
from services.identity.operations import accepting, sessions, signing_in
from services.identity.rpc.converters import (
    client_from_message,
    invitation_to_message,
    person_to_message,
    surface_from,
    surface_of_caller,
)
from services.identity.wiring import Deps


def knows_network(deps: Deps, request: pb.KnowsNetworkRequest) -> pb.KnowsNetworkResponse:
    known = signing_in.knows_network(deps, email=request.email, client=client_from_message(request.client))
    return pb.KnowsNetworkResponse(known=known)


def sign_in_by_password(deps: Deps, request: pb.SignInByPasswordRequest) -> pb.SignInByPasswordResponse:
    token = signing_in.sign_in_by_password(
        deps,
        email=request.email,
        password=request.password,
        code=request.code,
        surface=surface_from(request.surface),
        client=client_from_message(request.client),
    )
    return pb.SignInByPasswordResponse(session_token=token)


def authorize(deps: Deps, request: pb.AuthorizeRequest) -> pb.AuthorizeResponse:
    found = sessions.authorize(
        deps,
        session_token=request.session_token,
        surface=surface_from(request.surface),
        unattended=request.unattended,
    )
    return pb.AuthorizeResponse(
        person=person_to_message(found.person),
        session_id=str(found.session.id),
        merchant_id=str(found.merchant_id or ""),
        actor_token=found.actor_token,
        stepped_up_until=timestamp_from(found.stepped_up_until),
        has_complete_factors=found.factors.are_complete,
        way=found.session.way.value,
        session_ends_at=timestamp_from(found.ends_at),
        may_add_factors=found.may_add_factors,
    )


def step_up(deps: Deps, request: pb.StepUpRequest) -> pb.StepUpResponse:
    token = signing_in.step_up(
        deps,
        session_token=request.session_token,
        surface=surface_from(request.surface),
        client=client_from_message(request.client),
        code=request.code,
        challenge_id=request.passkey.challenge_id,
        credential=request.passkey.credential,
    )
    return pb.StepUpResponse(session_token=token)


def sign_out(deps: Deps, request: pb.SignOutRequest) -> pb.SignOutResponse:
    sessions.sign_out(deps, session_token=request.session_token, surface=surface_of_caller())
    return pb.SignOutResponse()


def _session(token: str) -> dict[str, Any]:
    return {"session_token": token}


METHODS: Final[Methods] = {
    "GetInvitation": by_name(
        accepting.get_invitation, lambda found: {"invitation": invitation_to_message(found)}
    ),
    "AcceptInvitation": by_name(accepting.accept_invitation, _session),
    "KnowsNetwork": knows_network,
    "SignInByPassword": sign_in_by_password,
    "StartPasskey": by_name(
        signing_in.start_passkey, lambda made: {"challenge_id": made[0], "options": made[1]}
    ),
    "SignInByPasskey": by_name(signing_in.sign_in_by_passkey, _session),
    "Authorize": authorize,
    "StepUp": step_up,
    "ChooseMerchant": by_name(sessions.choose_merchant),
    "SignOut": sign_out,
}
