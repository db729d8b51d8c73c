"""fiatgate.accounts.v1.SignInService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from kit.base.proto import timestamp_from
from services.accounts.operations import accepting, sessions, signing_in
from services.accounts.rpc.converters import (
    client_from_message,
    invitation_to_message,
    person_to_message,
    surface_from,
    surface_of_caller,
)
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class SignInServicer(accounts_pb2_grpc.SignInServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def GetInvitation(
        self, request: pb.GetInvitationRequest, context: grpc.ServicerContext
    ) -> pb.GetInvitationResponse:
        found = accepting.get_invitation(
            self._deps, token=request.token, surface=surface_from(request.surface)
        )
        return pb.GetInvitationResponse(invitation=invitation_to_message(found))

    def AcceptInvitation(
        self, request: pb.AcceptInvitationRequest, context: grpc.ServicerContext
    ) -> pb.AcceptInvitationResponse:
        token = accepting.accept_invitation(
            self._deps,
            token=request.token,
            surface=surface_from(request.surface),
            client=client_from_message(request.client),
        )
        return pb.AcceptInvitationResponse(session_token=token)

    def KnowsNetwork(
        self, request: pb.KnowsNetworkRequest, context: grpc.ServicerContext
    ) -> pb.KnowsNetworkResponse:
        known = signing_in.knows_network(
            self._deps, email=request.email, client=client_from_message(request.client)
        )
        return pb.KnowsNetworkResponse(known=known)

    def SignInByPassword(
        self, request: pb.SignInByPasswordRequest, context: grpc.ServicerContext
    ) -> pb.SignInByPasswordResponse:
        token = signing_in.sign_in_by_password(
            self._deps,
            email=request.email,
            password=request.password,
            code=request.code,
            surface=surface_from(request.surface),
            client=client_from_message(request.client),
        )
        return pb.SignInByPasswordResponse(session_token=token)

    def StartPasskey(
        self, request: pb.StartPasskeyRequest, context: grpc.ServicerContext
    ) -> pb.StartPasskeyResponse:
        challenge_id, options = signing_in.start_passkey(
            self._deps, surface=surface_from(request.surface), session_token=request.session_token
        )
        return pb.StartPasskeyResponse(challenge_id=challenge_id, options=options)

    def SignInByPasskey(
        self, request: pb.SignInByPasskeyRequest, context: grpc.ServicerContext
    ) -> pb.SignInByPasskeyResponse:
        token = signing_in.sign_in_by_passkey(
            self._deps,
            challenge_id=request.challenge_id,
            credential=request.credential,
            surface=surface_from(request.surface),
            client=client_from_message(request.client),
        )
        return pb.SignInByPasskeyResponse(session_token=token)

    def Authorize(self, request: pb.AuthorizeRequest, context: grpc.ServicerContext) -> pb.AuthorizeResponse:
        found = sessions.authorize(
            self._deps,
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

    def StepUp(self, request: pb.StepUpRequest, context: grpc.ServicerContext) -> pb.StepUpResponse:
        token = signing_in.step_up(
            self._deps,
            session_token=request.session_token,
            surface=surface_from(request.surface),
            client=client_from_message(request.client),
            code=request.code,
            challenge_id=request.passkey.challenge_id,
            credential=request.passkey.credential,
        )
        return pb.StepUpResponse(session_token=token)

    def ChooseMerchant(
        self, request: pb.ChooseMerchantRequest, context: grpc.ServicerContext
    ) -> pb.ChooseMerchantResponse:
        sessions.choose_merchant(
            self._deps,
            session_token=request.session_token,
            surface=surface_from(request.surface),
            merchant_id=request.merchant_id,
        )
        return pb.ChooseMerchantResponse()

    def SignOut(self, request: pb.SignOutRequest, context: grpc.ServicerContext) -> pb.SignOutResponse:
        sessions.sign_out(self._deps, session_token=request.session_token, surface=surface_of_caller())
        return pb.SignOutResponse()
