"""fiatgate.accounts.v1.OwnAccountService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from services.accounts.operations import factors, sessions
from services.accounts.rpc.converters import passkey_to_message, session_to_message
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class OwnAccountServicer(accounts_pb2_grpc.OwnAccountServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListFactors(
        self, request: pb.ListFactorsRequest, context: grpc.ServicerContext
    ) -> pb.ListFactorsResponse:
        own = factors.list_factors(self._deps)
        return pb.ListFactorsResponse(
            passkeys=[passkey_to_message(each) for each in own.passkeys],
            has_password=own.has_password,
            has_totp=own.has_totp,
            unused_recovery_codes=own.unused_recovery_codes,
        )

    def StartPasskeyRegistration(
        self, request: pb.StartPasskeyRegistrationRequest, context: grpc.ServicerContext
    ) -> pb.StartPasskeyRegistrationResponse:
        challenge_id, options = factors.start_passkey_registration(self._deps)
        return pb.StartPasskeyRegistrationResponse(challenge_id=challenge_id, options=options)

    def RegisterPasskey(
        self, request: pb.RegisterPasskeyRequest, context: grpc.ServicerContext
    ) -> pb.RegisterPasskeyResponse:
        passkey = factors.register_passkey(
            self._deps, challenge_id=request.challenge_id, credential=request.credential, name=request.name
        )
        return pb.RegisterPasskeyResponse(passkey=passkey_to_message(passkey))

    def RemovePasskey(
        self, request: pb.RemovePasskeyRequest, context: grpc.ServicerContext
    ) -> pb.RemovePasskeyResponse:
        factors.remove_passkey(self._deps, passkey_id=request.passkey_id)
        return pb.RemovePasskeyResponse()

    def SetPassword(
        self, request: pb.SetPasswordRequest, context: grpc.ServicerContext
    ) -> pb.SetPasswordResponse:
        factors.set_password(self._deps, password=request.password)
        return pb.SetPasswordResponse()

    def StartTotp(self, request: pb.StartTotpRequest, context: grpc.ServicerContext) -> pb.StartTotpResponse:
        secret, uri = factors.start_totp(self._deps)
        return pb.StartTotpResponse(secret=secret, uri=uri)

    def ConfirmTotp(
        self, request: pb.ConfirmTotpRequest, context: grpc.ServicerContext
    ) -> pb.ConfirmTotpResponse:
        factors.confirm_totp(self._deps, code=request.code)
        return pb.ConfirmTotpResponse()

    def RemoveTotp(
        self, request: pb.RemoveTotpRequest, context: grpc.ServicerContext
    ) -> pb.RemoveTotpResponse:
        factors.remove_totp(self._deps)
        return pb.RemoveTotpResponse()

    def MakeRecoveryCodes(
        self, request: pb.MakeRecoveryCodesRequest, context: grpc.ServicerContext
    ) -> pb.MakeRecoveryCodesResponse:
        return pb.MakeRecoveryCodesResponse(codes=factors.make_recovery_codes(self._deps))

    def ListOwnSessions(
        self, request: pb.ListOwnSessionsRequest, context: grpc.ServicerContext
    ) -> pb.ListOwnSessionsResponse:
        _, current = sessions.author()
        found = sessions.list_own_sessions(self._deps)
        return pb.ListOwnSessionsResponse(
            sessions=[session_to_message(each, current=current) for each in found]
        )

    def EndOwnSession(
        self, request: pb.EndOwnSessionRequest, context: grpc.ServicerContext
    ) -> pb.EndOwnSessionResponse:
        sessions.end_own_session(self._deps, session_id=request.session_id)
        return pb.EndOwnSessionResponse()

    def EndOtherSessions(
        self, request: pb.EndOtherSessionsRequest, context: grpc.ServicerContext
    ) -> pb.EndOtherSessionsResponse:
        return pb.EndOtherSessionsResponse(ended=sessions.end_other_sessions(self._deps))
