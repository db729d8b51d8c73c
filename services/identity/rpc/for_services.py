"""The services that other services call: keys of actor tokens, heads of chains of acts, e-mails to owners."""

from typing import Final

from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.audit.chain import Head
from kit.rpc.methods import Methods, by_name
from services.identity.operations import heads, keys, notices
from services.identity.wiring import Deps


def keep_head(deps: Deps, request: pb.KeepHeadRequest) -> pb.KeepHeadResponse:
    now = deps.clock.now()
    kept, own = heads.keep_head(
        deps,
        service=request.service,
        given=Head(request.count, request.hash, now),
        continues=request.continues,
        own=Head(request.own_count, request.own_hash, now),
    )
    answer = pb.KeepHeadResponse(kept_count=kept.count, kept_hash=kept.hash)
    if own is not None:
        answer.count, answer.hash = own.count, own.hash
    return answer


ACTOR_KEYS: Final[Methods] = {
    "ListActorKeys": by_name(
        keys.list_actor_keys,
        lambda found: {
            "keys": [pb.ActorKey(key_id=str(each.id), public_key=each.public_key) for each in found]
        },
    ),
    "RotateActorKey": by_name(keys.rotate_actor_key, lambda key_id: {"key_id": key_id}),
}
HEADS: Final[Methods] = {"KeepHead": keep_head}
NOTICES: Final[Methods] = {"TellOwners": by_name(notices.tell_owners)}
