"""OwnAccountService: the person's own factors and sessions."""

from typing import Any, Final

from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.methods import Methods, by_name
from services.identity.operations import factors, sessions
from services.identity.rpc.converters import passkey_to_message, session_to_message
from services.identity.wiring import Deps


def list_own_sessions(deps: Deps, request: pb.ListOwnSessionsRequest) -> pb.ListOwnSessionsResponse:
    _, current = sessions.author()
    found = sessions.list_own_sessions(deps)
    return pb.ListOwnSessionsResponse(sessions=[session_to_message(each, current=current) for each in found])


def _factors(own: factors.OwnFactors) -> dict[str, Any]:
    return {
        "passkeys": map(passkey_to_message, own.passkeys),
        "has_password": own.has_password,
        "has_totp": own.has_totp,
        "unused_recovery_codes": own.unused_recovery_codes,
    }


METHODS: Final[Methods] = {
    "ListFactors": by_name(factors.list_factors, _factors),
    "StartPasskeyRegistration": by_name(
        factors.start_passkey_registration, lambda made: {"challenge_id": made[0], "options": made[1]}
    ),
    "RegisterPasskey": by_name(
        factors.register_passkey, lambda passkey: {"passkey": passkey_to_message(passkey)}
    ),
    "RemovePasskey": by_name(factors.remove_passkey),
    "SetPassword": by_name(factors.set_password),
    "StartTotp": by_name(factors.start_totp, lambda made: {"secret": made[0], "uri": made[1]}),
    "ConfirmTotp": by_name(factors.confirm_totp),
    "RemoveTotp": by_name(factors.remove_totp),
    "MakeRecoveryCodes": by_name(factors.make_recovery_codes, lambda codes: {"codes": codes}),
    "ListOwnSessions": list_own_sessions,
    "EndOwnSession": by_name(sessions.end_own_session),
    "EndOtherSessions": by_name(sessions.end_other_sessions, lambda ended: {"ended": ended}),
}
