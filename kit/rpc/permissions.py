"""The processes and actors that may make a call, as its proto says (`fiatgate.rpc.v1.access`).

`kit.rpc.callers` decides by certificates, which name processes. `Check` decides by actors: a process of ours, a person
of the staff or of a merchant with a role, or the command line, which may everything. Both must let a call pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from google.protobuf import descriptor_pool

from fiatgate.accounts.v1 import accounts_pb2
from fiatgate.rpc.v1 import access_pb2
from fiatgate.rpc.v1.access_pb2 import Access
from kit.base import actors
from kit.base.actors import MEMBER_ROLES, STAFF_ROLES, Actor
from kit.base.clock import Clock, SystemClock
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc import callers, errors
from kit.rpc.actor_tokens import AHEAD_AT_MOST, Invalid, Keys, NoKeys, read_token
from kit.rpc.actors import CLI_KEY, TOKEN_KEY, cli_actor, may_see_merchant
from kit.rpc.errors import Refused

STEP_UP_COUNTS: Final = timedelta(minutes=5)

READERS: Final = ("viewer", "desk", "treasury", "prices")
"""The roles of the staff that see the daily work, `readers` in the protos; `admin` and `auditor` always do."""
CONSOLES: Final = {"console-desk": "desk", "console-dashboard": "dashboard"}
"""Names in certificates -> the surface of the people there."""
_SURFACES: Final = {accounts_pb2.SURFACE_DESK: "desk", accounts_pb2.SURFACE_DASHBOARD: "dashboard"}
CLI: Final = "cli"

UPDATE_CLI: Final = (
    "This call changes something and names no author: "
    "update the fiatgate command to the version of the services"
)

# Without labels, so that it exists from the start at 0 and the first refusal is an increase.
REFUSED: Final = metrics.counter("rpc_actors_refused", "Calls whose token or name of an actor does not count")

_log = get_logger()


@dataclass(frozen=True, kw_only=True)
class Permission:
    """The processes and actors that may call one method, and its kind: an `Access` with all roles written out."""

    callers: frozenset[str] = frozenset({CLI})
    for_api: bool = False
    signing_in: bool = False
    no_person: bool = False
    own: bool = False
    staff: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    merchant: access_pb2.Merchant.ValueType = access_pb2.MERCHANT_UNSPECIFIED
    changes: bool = True
    steps_up: bool = False
    kind: str = ""

    @property
    def machines(self) -> bool:
        """Returns whether processes call it for themselves, or a console that knows no person yet."""
        return self.signing_in or not self.callers <= {CLI, *CONSOLES}

    def roles(self, surface: str) -> frozenset[str]:
        """Returns the roles that may call it on the surface."""
        return self.members if surface == "dashboard" else self.staff


def permission_of(method: str, service: str) -> Permission:
    """Returns what the proto says about `/package.Service/Method` in a service; without an entry, and for a method of
    no proto of ours, only the command line may call it.
    """
    try:
        found = descriptor_pool.Default().FindMethodByName(method.strip("/").replace("/", "."))
    except KeyError:
        return Permission()
    entries = found.GetOptions().Extensions[access_pb2.access]
    of_service = [each for each in entries if service in each.services]
    chosen = of_service or [each for each in entries if not each.services]
    return permission_from_access(chosen[0]) if chosen else Permission()


def permission_from_access(access: Access) -> Permission:
    """Returns the permission with all roles: `admin` and `owner`, and `auditor` where nothing is changed."""
    staff, members = set(access.staff), set(access.members)
    if "readers" in staff:
        staff = staff - {"readers"} | set(READERS)
    if staff:
        staff |= {"admin"} if access.changes else {"admin", "auditor"}
    if members:
        members |= {"owner"}
    if access.own:
        staff, members = set(STAFF_ROLES), set(MEMBER_ROLES)
    assert staff <= set(STAFF_ROLES), staff
    assert members <= set(MEMBER_ROLES), members
    return Permission(
        callers=frozenset({CLI, *access.callers}),
        for_api=access.for_api,
        signing_in=access.signing_in,
        no_person=access.no_person,
        own=access.own,
        staff=frozenset(staff),
        members=frozenset(members),
        merchant=access_pb2.MERCHANT_OF_NONE if access.own else access.merchant,
        changes=access.changes,
        steps_up=access.steps_up,
        kind=access.kind,
    )


Record = Callable[[Actor, str, Refused], None]
"""Records that the actor was refused the method; must not raise."""


def _unrecorded(actor: Actor, method: str, refused: Refused) -> None:
    """Records nothing."""


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The parts that the checks of a server need.

    keys    the public keys of identity
    record  gets each refusal of an actor that claimed a name
    """

    keys: Keys = field(default_factory=NoKeys)
    record: Record = _unrecorded
    clock: Clock = field(default_factory=SystemClock)

    def of(self, method: str, permission: Permission) -> Check:
        """Returns the check of `/package.Service/Method`."""
        return Check(method.rpartition(".")[2], permission, self)


class Check:
    """The check of one method. A call of a process of ours costs two look-ups."""

    def __init__(self, method: str, permission: Permission, checks: Checks) -> None:
        self._method = method
        self._permission = permission
        self._checks = checks
        self._unnamed: dict[str | None, Actor] = {}  # at most one for each name in `callers`

    def actor_of(self, request: Any, metadata: Mapping[str, str | bytes]) -> Actor:
        """Returns the author of the call. Raises ACTOR_INVALID, NOT_PERMITTED, and for a member of another
        merchant MERCHANT_NOT_FOUND. A call that lacks its step-up raises STEP_UP_REQUIRED in place of its first change.
        """
        caller = callers.current()
        if self._permission.signing_in:
            self._require_own_surface(request, caller)
        if TOKEN_KEY in metadata:
            return self._person(request, metadata[TOKEN_KEY], caller)
        if CLI_KEY in metadata:
            return self._operator(metadata, caller)
        actor = self._unnamed.get(caller)
        if actor is None:
            actor = self._unnamed[caller] = self._process(caller)
        return actor

    def _process(self, caller: str | None) -> Actor:
        """Returns the actor of a call without a name. Without TLS the caller may be anything, so it may what is open to
        processes, and read.
        """
        permission = self._permission
        if permission.no_person and caller in CONSOLES:
            return _process(caller)
        if caller in CONSOLES and not permission.signing_in:
            raise self._refused(
                _process(caller), _invalid("missing", "The console names a person in each call")
            )
        if permission.machines:
            kind = "api" if permission.for_api else "process"
            return Actor(kind=kind, name=caller or ("gateway" if permission.for_api else ""), surface=kind)
        if caller not in (None, CLI):
            raise self._refused(
                _process(caller), _not_permitted("person", "A person or the command line does this")
            )
        if permission.changes:
            raise self._refused(_process(caller), _invalid("missing", UPDATE_CLI))
        return Actor(kind="cli", name="", surface="cli")

    def _operator(self, metadata: Mapping[str, str | bytes], caller: str | None) -> Actor:
        if caller not in (None, CLI):
            raise self._recorded(
                _process(caller), _invalid("surface", "Only the command line acts as an operator")
            )
        actor = cli_actor(metadata)
        if actor is None:
            raise self._recorded(
                _process(caller), _invalid("malformed", "The name of the operator is malformed")
            )
        return actor

    def _person(self, request: Any, token: str | bytes, caller: str | None) -> Actor:
        try:
            actor = read_token(token, self._checks.keys, now=self._checks.clock.now())
        except Invalid as why:
            refused = _invalid(str(why), "The token of the person does not count")
            raise self._recorded(_process(caller), refused) from None
        if caller is not None and CONSOLES.get(caller) != actor.surface:
            raise self._recorded(actor, _invalid("surface", "The token is of another surface"))
        if self._permission.signing_in:
            return actor
        self._require_role(actor)
        self._require_merchant(actor, request)
        self._demand_step_up(actor)
        return actor

    def _require_own_surface(self, request: Any, caller: str | None) -> None:
        """A sign-in is on the surface of the certificate. Without TLS the request's word counts."""
        named = _SURFACES.get(getattr(request, "surface", accounts_pb2.SURFACE_UNSPECIFIED))
        if caller in CONSOLES and named not in (None, CONSOLES[caller]):
            raise self._recorded(_process(caller), _invalid("surface", "The sign-in is of another surface"))

    def _require_role(self, actor: Actor) -> None:
        if self._permission.own:
            return
        needed = self._permission.roles(actor.surface)
        if needed.isdisjoint(actor.roles):
            roles = ", ".join(sorted(needed)) or "none of this surface"
            raise self._recorded(actor, _not_permitted(roles, "Your roles do not allow this"))

    def _require_merchant(self, actor: Actor, request: Any) -> None:
        merchant = self._permission.merchant
        if merchant == access_pb2.MERCHANT_OF_NONE or actor.surface != "dashboard":
            return
        of_object = merchant == access_pb2.MERCHANT_OF_OBJECT
        named = actor.merchant_id if of_object else request.merchant_id
        if named is None or not may_see_merchant(actor, named):
            raise self._recorded(actor, errors.not_found("MERCHANT_NOT_FOUND", "There is no such merchant"))

    def _demand_step_up(self, actor: Actor) -> None:
        """Lets a call without a fresh proof check its values and rules, and change nothing."""
        if not self._permission.steps_up:
            return
        at = actor.stepped_up_at
        now = self._checks.clock.now()
        if at is None or not now - STEP_UP_COUNTS <= at <= now + AHEAD_AT_MOST:
            message = "Confirm that it is you: a passkey or a code within the last 5 minutes"
            actors.demand_proof(errors.denied("STEP_UP_REQUIRED", message))

    def _recorded(self, actor: Actor, refused: Refused) -> Refused:
        self._checks.record(actor, self._method, refused)
        if refused.reason == "ACTOR_INVALID":
            REFUSED.inc()
        return self._refused(actor, refused)

    def _refused(self, actor: Actor, refused: Refused) -> Refused:
        _log.warning(
            "actor_refused",
            method=self._method,
            actor=str(actor),
            reason=refused.reason,
            **refused.metadata,
        )
        return refused


def _process(caller: str | None) -> Actor:
    return Actor(kind="process", name=caller or "")


def _invalid(problem: str, message: str) -> Refused:
    return errors.unauthenticated("ACTOR_INVALID", message, problem=problem)


def _not_permitted(needed: str, message: str) -> Refused:
    return errors.denied("NOT_PERMITTED", message, needed=needed)
