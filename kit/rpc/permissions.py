"""The actors that may make a call: each service declares them beside its servicers, method by method (`PERMISSIONS`).

`kit.rpc.callers` decides by certificates, which name processes. This table decides by actors: a process of ours, a
person of the staff or of a merchant with a role, or the command line, which may everything. Both must let a call pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from fiatgate.accounts.v1 import accounts_pb2
from kit.base.actors import MEMBER_ROLES, STAFF_ROLES, Actor
from kit.base.clock import Clock, SystemClock
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc import callers, errors
from kit.rpc.actor_tokens import AHEAD_AT_MOST, Invalid, Keys, NoKeys, read_token
from kit.rpc.actors import CLI_KEY, TOKEN_KEY, cli_actor, may_see_merchant
from kit.rpc.errors import Refused

STEP_UP_COUNTS: Final = timedelta(minutes=5)

OF_OBJECT: Final = "of the object"
"""For `members(merchant_field=…)`: the request names an object only, and the operation calls
`kit.rpc.actors.require_merchant` with the merchant of it."""
OF_NONE: Final = ""
"""For `members(merchant_field=…)`: the answer is the same for each merchant, or the person's own."""

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
    """The actors that may call one method; the command line may call each.

    machines        processes of ours, as CALLERS lists them
    for_api         the method does the work of a merchant's program
    signing_in      the console calls it before a person is known
    no_person       the console also calls it by itself, for no person: the answer concerns none
    own             for each person who is signed in, also for a member of several merchants who has chosen none yet
    staff, members  the roles on the desk, and on the dashboard
    merchant_field  the field of the request that must be the member's merchant, or OF_OBJECT, or OF_NONE
    changes         the method changes something, so its author must be known
    steps_up        people need a step-up within the last 5 minutes
    """

    machines: bool = False
    for_api: bool = False
    signing_in: bool = False
    no_person: bool = False
    own: bool = False
    staff: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    merchant_field: str = OF_NONE
    changes: bool = False
    steps_up: bool = False

    def __or__(self, other: Permission) -> Permission:
        return Permission(
            machines=self.machines or other.machines,
            for_api=self.for_api or other.for_api,
            signing_in=self.signing_in or other.signing_in,
            no_person=self.no_person or other.no_person,
            own=self.own or other.own,
            staff=self.staff | other.staff,
            members=self.members | other.members,
            merchant_field=self.merchant_field or other.merchant_field,
            changes=self.changes or other.changes,
            steps_up=self.steps_up or other.steps_up,
        )

    def roles(self, surface: str) -> frozenset[str]:
        """Returns the roles that may call it, with those that may all: `admin` and `owner`; `auditor` all reads."""
        if surface == "dashboard":
            return self.members | {"owner"} if self.members else self.members
        always = {"admin"} if self.changes else {"admin", "auditor"}
        return self.staff | always if self.staff else self.staff


Permissions = Mapping[str, Permission]
"""Each method of each servicer that a service registers, as `InvoicesService/CreateInvoice`."""


def machine(*, for_api: bool = False, changes: bool = False) -> Permission:
    """Returns the permission of processes of ours."""
    return Permission(machines=True, for_api=for_api, changes=changes)


def signing_in(*, changes: bool = True) -> Permission:
    """Returns the permission of the console's calls before it knows the person."""
    return Permission(machines=True, signing_in=True, changes=changes)


def for_no_person() -> Permission:
    """Returns the permission of a console's own process, as CALLERS lists it, in a call that names no person."""
    return Permission(no_person=True)


def staff(*roles: str, changes: bool = False, steps_up: bool = False) -> Permission:
    """Returns the permission of these roles on the desk, and of `admin`; for a read, of `auditor` too."""
    assert set(roles) <= set(STAFF_ROLES), f"unknown roles: {set(roles) - set(STAFF_ROLES)}"
    return Permission(staff=frozenset({*roles, "admin"}), changes=changes, steps_up=steps_up)


def members(
    *roles: str, merchant_field: str = "merchant_id", changes: bool = False, steps_up: bool = False
) -> Permission:
    """Returns the permission of these roles of the merchant in `merchant_field`, and of its `owner`."""
    assert set(roles) <= set(MEMBER_ROLES), f"unknown roles: {set(roles) - set(MEMBER_ROLES)}"
    return Permission(
        members=frozenset({*roles, "owner"}),
        merchant_field=merchant_field,
        changes=changes,
        steps_up=steps_up,
    )


def everyone(*, changes: bool = False, steps_up: bool = False) -> Permission:
    """Returns the permission of each person, for what is the person's own."""
    roles = staff(*STAFF_ROLES, changes=changes, steps_up=steps_up) | members(
        *MEMBER_ROLES, merchant_field=OF_NONE
    )
    return replace(roles, own=True)


READERS: Final = ("viewer", "desk", "treasury", "prices")
"""The roles of the staff that see the daily work; `admin` and `auditor` always do."""


Record = Callable[[Actor, str, Refused], None]
"""Records that the actor was refused the method; must not raise."""


def _unrecorded(actor: Actor, method: str, refused: Refused) -> None:
    """Records nothing."""


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The permissions of a server, and what its checks need.

    keys    the public keys of accounts
    record  gets each refusal of an actor that claimed a name
    """

    permissions: Permissions
    keys: Keys = field(default_factory=NoKeys)
    record: Record = _unrecorded
    clock: Clock = field(default_factory=SystemClock)

    def of(self, method: str) -> Check:
        """Returns the check of `/package.Service/Method`. A method without a row is open to the command line only."""
        called = method.rpartition(".")[2]
        return Check(called, self.permissions.get(called, Permission(changes=True)), self)


class Check:
    """The check of one method. A call of a process of ours costs two look-ups."""

    def __init__(self, method: str, permission: Permission, checks: Checks) -> None:
        self._method = method
        self._permission = permission
        self._checks = checks
        self._unnamed: dict[str | None, Actor] = {}  # at most one for each name in CALLERS

    def actor_of(self, request: Any, metadata: Mapping[str, str | bytes]) -> Actor:
        """Returns the author of the call. Raises ACTOR_INVALID, NOT_PERMITTED, STEP_UP_REQUIRED, and for a member of
        another merchant MERCHANT_NOT_FOUND.
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
        self._require_step_up(actor)
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
        name = self._permission.merchant_field
        if name == OF_NONE or actor.surface != "dashboard":
            return
        named = actor.merchant_id if name == OF_OBJECT else getattr(request, name)
        if named is None or not may_see_merchant(actor, named):
            raise self._recorded(actor, errors.not_found("MERCHANT_NOT_FOUND", "There is no such merchant"))

    def _require_step_up(self, actor: Actor) -> None:
        if not self._permission.steps_up:
            return
        at = actor.stepped_up_at
        now = self._checks.clock.now()
        if at is None or not now - STEP_UP_COUNTS <= at <= now + AHEAD_AT_MOST:
            message = "Confirm that it is you: a passkey or a code within the last 5 minutes"
            raise self._refused(actor, errors.denied("STEP_UP_REQUIRED", message))

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
