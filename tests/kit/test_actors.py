"""The actor of a call: tokens of people, the command line, processes of ours; over real connections."""

import base64
import json
from collections.abc import Callable, Iterator
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from structlog.testing import capture_logs

from fiatgate.audit.v1 import audit_pb2 as pb
from fiatgate.rpc.v1 import access_pb2
from fiatgate.rpc.v1.access_pb2 import Access
from kit.base import actors
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.base.tls import Files, Identity
from kit.rpc import actors as rpc_actors
from kit.rpc import client
from kit.rpc.actor_tokens import ALGORITHM, LIFETIME, write_token
from kit.rpc.actors import carry_cli, carry_token, require_merchant
from kit.rpc.errors import Refused, not_found
from kit.rpc.permissions import REFUSED, UPDATE_CLI, Checks
from kit.rpc.server import Options, RpcServer
from tests.support.authors import act_as
from tests.support.certificates import Authority
from tests.support.clock import ManualClock
from tests.support.contracts import declare

MERCHANT, OTHER = new_id(), new_id()

_CONSOLES: Final = ("console-desk", "console-dashboard")
ACCESS: Final = {
    "Confirm": Access(callers=_CONSOLES, staff=["desk"], changes=True),
    "Look": Access(callers=_CONSOLES, staff=["viewer"]),
    "Create": Access(callers=(*_CONSOLES, "gateway"), for_api=True, changes=True),
    "Pay": Access(callers=_CONSOLES, staff=["treasury"], members=["finance"], changes=True, steps_up=True),
    "Balance": Access(callers=(*_CONSOLES, "gateway"), staff=["viewer"], members=["viewer"]),
    "Load": Access(callers=_CONSOLES, members=["viewer"], merchant=access_pb2.MERCHANT_OF_OBJECT),
    "SignIn": Access(callers=_CONSOLES, signing_in=True, changes=True),
    "Watch": Access(callers=_CONSOLES, staff=["viewer"], no_person=True),
    "Own": Access(callers=_CONSOLES, own=True, changes=True, steps_up=True),
    "Forgotten": None,
}
declare("test.actors.Shop", ACCESS)


class Keys:
    """Those of identity, in memory."""

    def __init__(self) -> None:
        self.private = {name: Ed25519PrivateKey.generate() for name in ("first", "second")}

    def find(self, key_id: str) -> Ed25519PublicKey | None:
        key = self.private.get(key_id)
        return None if key is None else key.public_key()


class Shop:
    """A service whose methods answer with their author, as accounts and services see it."""

    def __init__(self, identity: Identity | None) -> None:
        self.clock, self.keys = ManualClock(), Keys()
        self.refused: list[tuple[Actor, str, str]] = []
        self.authors: list[Actor] = []
        checks = Checks(keys=self.keys, record=self._record, clock=self.clock)
        self._server = RpcServer(Options(identity=identity, checks=checks))
        handlers: dict[str, grpc.RpcMethodHandler[pb.ListActsRequest, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(
                self._load if name == "Load" else self._answer,
                request_deserializer=pb.ListActsRequest.FromString,
            )
            for name in ACCESS
        }
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("test.actors.Shop", handlers)]
        )
        self.port = self._server.listen("127.0.0.1:0")
        self._server.start()

    def _record(self, actor: Actor, method: str, refused: Refused) -> None:
        self.refused.append((actor, method, refused.metadata.get("problem", refused.reason)))

    def _answer(self, request: pb.ListActsRequest, context: grpc.ServicerContext) -> bytes:
        self.authors.append(actors.current())
        return str(actors.current()).encode()

    def _load(self, request: pb.ListActsRequest, context: grpc.ServicerContext) -> bytes:
        require_merchant(request.merchant_id, lambda: not_found("PERSON_NOT_FOUND", "None of yours"))
        return self._answer(request, context)

    def token(self, *, key_id: str = "first", **of_actor: Any) -> str:
        """One of identity, for a person of the desk unless told otherwise."""
        given: dict[str, Any] = {"surface": "desk", "roles": frozenset({"desk"})}
        person = Actor(
            kind="person",
            name="eve@example.com",
            person_id=new_id(),
            session_id=new_id(),
            **(given | of_actor),
        )
        return write_token(person, key_id=key_id, private_key=self.keys.private[key_id], now=self.clock.now())

    def claims(self) -> dict[str, Any]:
        found: dict[str, Any] = jwt.decode(self.token(), options={"verify_signature": False})
        return found

    def stop(self) -> None:
        self._server.stop(0).wait(5)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def shop() -> Iterator[Shop]:
    """Without TLS."""
    made = Shop(None)
    yield made
    made.stop()


@pytest.fixture
def secured(authority: Authority, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(Identity(authority.issue(tmp_path / "shop", "shop")))
    yield made
    made.stop()


def call(
    shop: Shop,
    method: str,
    carry: Callable[[], None] = lambda: None,
    *,
    merchant: UUID | str = "",
    files: Files | None = None,
) -> str:
    """The author that the service saw; raises its refusal."""

    def do() -> str:
        carry()
        identity = None if files is None else Identity(files)
        with client.channel(f"127.0.0.1:{shop.port}", name="shop", identity=identity) as channel:
            stub: grpc.UnaryUnaryMultiCallable[pb.ListActsRequest, bytes] = channel.unary_unary(
                f"/test.actors.{method}", request_serializer=pb.ListActsRequest.SerializeToString
            )
            return stub(pb.ListActsRequest(merchant_id=str(merchant))).decode()

    return copy_context().run(do)


def refusal(shop: Shop, method: str, carry: Callable[[], None] = lambda: None, **options: Any) -> Refused:
    with pytest.raises(Refused) as raised:
        call(shop, method, carry, **options)
    return raised.value


def with_token(token: str) -> Callable[[], None]:
    return lambda: carry_token(token)


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process names nobody, as processes of ours."""
    monkeypatch.setattr(rpc_actors, "_carried_by_process", ())


# -- people


def test_a_person_with_the_role_is_the_author(shop: Shop) -> None:
    assert call(shop, "Shop/Confirm", with_token(shop.token())) == "eve@example.com"
    (author,) = shop.authors
    assert (author.kind, author.surface, author.roles) == ("person", "desk", frozenset({"desk"}))
    assert author.person_id is not None
    assert author.session_id is not None


def test_a_role_that_may_not_is_refused_with_those_that_may_and_recorded(shop: Shop) -> None:
    refused = refusal(shop, "Shop/Confirm", with_token(shop.token(roles=frozenset({"prices"}))))
    assert (refused.reason, refused.code) == ("NOT_PERMITTED", grpc.StatusCode.PERMISSION_DENIED)
    assert refused.metadata == {"needed": "admin, desk"}
    ((actor, method, problem),) = shop.refused
    assert (actor.name, method, problem) == ("eve@example.com", "Shop/Confirm", "NOT_PERMITTED")
    assert shop.authors == []


def test_an_administrator_may_all_and_an_auditor_reads_all(shop: Shop) -> None:
    assert call(shop, "Shop/Confirm", with_token(shop.token(roles=frozenset({"admin"}))))
    assert call(shop, "Shop/Look", with_token(shop.token(roles=frozenset({"auditor"}))))
    refused = refusal(shop, "Shop/Confirm", with_token(shop.token(roles=frozenset({"auditor", "viewer"}))))
    assert refused.reason == "NOT_PERMITTED"


def test_a_method_without_a_row_is_closed_to_all_but_the_command_line(shop: Shop, unnamed: None) -> None:
    refused = refusal(shop, "Shop/Forgotten", with_token(shop.token(roles=frozenset({"admin"}))))
    assert refused.reason == "NOT_PERMITTED"
    assert refusal(shop, "Shop/Forgotten").reason == "ACTOR_INVALID"


def test_a_token_lives_for_a_minute(shop: Shop) -> None:
    token = shop.token()
    shop.clock.advance(seconds=LIFETIME.total_seconds() - 1)
    assert call(shop, "Shop/Confirm", with_token(token))
    shop.clock.advance(seconds=2)
    refused = refusal(shop, "Shop/Confirm", with_token(token))
    assert (refused.reason, refused.metadata) == ("ACTOR_INVALID", {"problem": "age"})
    assert refused.code is grpc.StatusCode.UNAUTHENTICATED
    assert [problem for _, _, problem in shop.refused] == ["age"]


@pytest.mark.parametrize(("ahead_seconds", "passes"), [(4, True), (6, False)])
def test_the_clock_of_accounts_may_be_5_seconds_ahead(shop: Shop, ahead_seconds: int, passes: bool) -> None:
    token = shop.token()
    shop.clock.advance(seconds=-ahead_seconds)
    if passes:
        assert call(shop, "Shop/Confirm", with_token(token))
    else:
        assert refusal(shop, "Shop/Confirm", with_token(token)).metadata == {"problem": "age"}


def forged(shop: Shop, how: str) -> str:
    """A token that no key of identity has signed as it is."""
    claims, first = shop.claims(), shop.keys.private["first"]
    public = first.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    header = {"kid": "first"}
    if how == "signed by another key":
        return jwt.encode(claims, Ed25519PrivateKey.generate(), algorithm=ALGORITHM, headers=header)
    if how == "changed after it was signed":
        head, _, signature = shop.token().split(".")
        body = (
            base64.urlsafe_b64encode(json.dumps(claims | {"roles": ["admin"]}).encode()).rstrip(b"=").decode()
        )
        return f"{head}.{body}.{signature}"
    if how == "without signature":
        return jwt.encode(claims, "", algorithm="none", headers=header)
    if how == "HMAC with the public key":
        return jwt.encode(claims, public, algorithm="HS256", headers=header)
    if how == "a key that identity does not have":
        return jwt.encode(claims, first, algorithm=ALGORITHM, headers={"kid": "third"})
    if how == "without a key id":
        return jwt.encode(claims, first, algorithm=ALGORITHM)
    changes: dict[str, dict[str, Any]] = {
        "of another issuer": {"iss": "elsewhere"},
        "alive for a year": {"exp": claims["exp"] + 31_536_000},
        "issued tomorrow": {"iat": claims["iat"] + 86_400, "exp": claims["exp"] + 86_400},
        "issued tomorrow, ending today": {"iat": claims["iat"] + 86_400},
        "of a surface that does not exist": {"surface": "cli"},
        "of the desk for a merchant": {"merchant": str(MERCHANT)},
        "with roles that are no list": {"roles": "admin"},
        "of no person": {"sub": "admin"},
        "with a time that is none": {"exp": "soon"},
        "with a time beyond all": {"iat": 1 << 50, "exp": 1 << 50},
    }
    return jwt.encode(claims | changes[how], first, algorithm=ALGORITHM, headers=header)


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("signed by another key", "signature"),
        ("changed after it was signed", "signature"),
        ("without signature", "algorithm"),
        ("HMAC with the public key", "algorithm"),
        ("a key that identity does not have", "key"),
        ("without a key id", "key"),
        ("of another issuer", "issuer"),
        ("alive for a year", "age"),
        ("issued tomorrow", "age"),
        ("issued tomorrow, ending today", "age"),
        ("of a surface that does not exist", "malformed"),
        ("of the desk for a merchant", "malformed"),
        ("with roles that are no list", "malformed"),
        ("of no person", "malformed"),
        ("with a time that is none", "malformed"),
        ("with a time beyond all", "malformed"),
    ],
)
def test_a_forged_token_is_refused_and_recorded(shop: Shop, how: str, problem: str) -> None:
    before = REFUSED._value.get()
    refused = refusal(shop, "Shop/Confirm", with_token(forged(shop, how)))
    assert (refused.reason, refused.metadata) == ("ACTOR_INVALID", {"problem": problem})
    assert REFUSED._value.get() == before + 1
    ((actor, _, recorded),) = shop.refused
    assert recorded == problem
    assert actor.person_id is None, "its claims prove nothing"
    assert shop.authors == []


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "." * 3000, "x" * 7000, '{"alg":"EdDSA"}'])
def test_what_is_no_token_is_refused(shop: Shop, text: str) -> None:
    assert refusal(shop, "Shop/Look", with_token(text)).metadata == {"problem": "malformed"}


def test_tokens_of_every_key_of_accounts_count_until_it_drops_the_key(shop: Shop) -> None:
    tokens = [shop.token(key_id=key_id) for key_id in ("first", "second")]
    assert [call(shop, "Shop/Confirm", with_token(token)) for token in tokens] == ["eve@example.com"] * 2
    del shop.keys.private["first"]
    assert refusal(shop, "Shop/Confirm", with_token(tokens[0])).metadata == {"problem": "key"}
    assert call(shop, "Shop/Confirm", with_token(tokens[1]))


def test_payments_need_a_step_up_within_5_minutes(shop: Shop) -> None:
    def token(ago: timedelta | None) -> str:
        at = None if ago is None else shop.clock.now() - ago
        return shop.token(roles=frozenset({"treasury"}), stepped_up_at=at)

    assert call(shop, "Shop/Pay", with_token(token(timedelta(minutes=4, seconds=59))))
    for ago in (None, timedelta(minutes=5, seconds=1), -timedelta(days=1)):
        assert refusal(shop, "Shop/Pay", with_token(token(ago))).reason == "STEP_UP_REQUIRED"
    assert shop.refused == [], "the person is asked for a code, which is no attempt"
    assert call(shop, "Shop/Pay", lambda: carry_cli("ann@host1")), "the command line has its certificate"


# -- members


def member(shop: Shop, merchant: UUID | None = MERCHANT, *roles: str) -> Callable[[], None]:
    given = frozenset(roles or ("viewer",))
    return with_token(
        shop.token(surface="dashboard", roles=given, merchant_id=merchant, stepped_up_at=shop.clock.now())
    )


def test_a_member_reaches_its_own_merchant_only(shop: Shop) -> None:
    assert call(shop, "Shop/Balance", member(shop), merchant=MERCHANT)
    for merchant in (OTHER, "", "x"):
        refused = refusal(shop, "Shop/Balance", member(shop), merchant=merchant)
        assert (refused.reason, refused.code) == ("MERCHANT_NOT_FOUND", grpc.StatusCode.NOT_FOUND)
    assert refusal(shop, "Shop/Balance", member(shop, None), merchant=MERCHANT).reason == "MERCHANT_NOT_FOUND"
    assert len(shop.refused) == 4


def test_an_object_of_another_merchant_looks_like_none(shop: Shop) -> None:
    assert call(shop, "Shop/Load", member(shop), merchant=MERCHANT)
    assert refusal(shop, "Shop/Load", member(shop), merchant=OTHER).reason == "PERSON_NOT_FOUND"
    assert refusal(shop, "Shop/Load", member(shop, None), merchant=OTHER).reason == "MERCHANT_NOT_FOUND"


def test_roles_of_a_member_open_nothing_of_the_staff(shop: Shop) -> None:
    for roles in (("owner",), ("viewer", "finance", "developer"), ("desk", "admin")):
        assert refusal(shop, "Shop/Confirm", member(shop, MERCHANT, *roles)).reason == "NOT_PERMITTED"
    assert call(shop, "Shop/Pay", member(shop, MERCHANT, "owner"), merchant=MERCHANT)
    assert refusal(shop, "Shop/Pay", member(shop, MERCHANT, "developer"), merchant=MERCHANT).metadata == {
        "needed": "finance, owner"
    }


def test_the_staff_reaches_every_merchant_and_each_person_what_is_its_own(shop: Shop) -> None:
    viewer = with_token(shop.token(roles=frozenset({"viewer"}), stepped_up_at=shop.clock.now()))
    for merchant in (MERCHANT, OTHER, ""):
        assert call(shop, "Shop/Balance", viewer, merchant=merchant)
    assert call(shop, "Shop/Own", viewer)
    assert call(shop, "Shop/Own", member(shop))
    of_several = shop.token(surface="dashboard", roles=frozenset(), stepped_up_at=shop.clock.now())
    assert call(shop, "Shop/Own", with_token(of_several))  # without a merchant there are no roles


# -- the command line, and processes


def test_the_command_line_may_everything_and_names_a_person(shop: Shop) -> None:
    assert call(shop, "Shop/Confirm", lambda: carry_cli("ann@host1")) == "cli:ann@host1"
    assert call(shop, "Shop/Forgotten", lambda: carry_cli("ann@host1")) == "cli:ann@host1"
    named = call(shop, "Shop/Pay", lambda: carry_cli("ünna b@höst", on_behalf_of="eve+x@example.com"))
    assert named == "cli:ünna b@höst for eve+x@example.com"
    act_as("tests@harness")


@pytest.mark.parametrize(
    ("name", "on_behalf_of"), [("", ""), ("a\nb@host", ""), ("ann@host", "nobody"), ("ann@host", "a b@c")]
)
def test_a_name_that_could_not_be_recorded_is_refused(shop: Shop, name: str, on_behalf_of: str) -> None:
    refused = refusal(shop, "Shop/Confirm", lambda: carry_cli(name, on_behalf_of=on_behalf_of))
    assert (refused.reason, refused.metadata) == ("ACTOR_INVALID", {"problem": "malformed"})
    act_as("tests@harness")


def test_a_command_without_an_author_reads_and_is_asked_to_update_for_changes(
    shop: Shop, secured: Shop, unnamed: None, authority: Authority, tmp_path: Path
) -> None:
    cli = authority.issue(tmp_path / "cli", "cli")
    for place, files in ((shop, None), (secured, cli)):
        assert call(place, "Shop/Look", files=files) == "cli"
        refused = refusal(place, "Shop/Confirm", files=files)
        assert (refused.reason, refused.message) == ("ACTOR_INVALID", UPDATE_CLI)


def test_a_process_without_tls_may_what_is_open_to_processes(shop: Shop, unnamed: None) -> None:
    assert call(shop, "Shop/Create") == "api:gateway"
    assert call(shop, "Shop/Balance") == "process"
    assert call(shop, "Shop/SignIn") == "process"


def test_the_certificate_names_a_process(
    secured: Shop, unnamed: None, authority: Authority, tmp_path: Path
) -> None:
    gateway = authority.issue(tmp_path / "gateway", "gateway")
    assert call(secured, "Shop/Create", files=gateway) == "api:gateway"
    assert call(secured, "Shop/Balance", files=gateway) == "process:gateway"
    assert refusal(secured, "Shop/Confirm", files=gateway).reason == "INTERNAL_ERROR"  # peer_refused


def test_a_name_of_the_command_line_counts_for_its_certificate_only(
    secured: Shop, authority: Authority, tmp_path: Path
) -> None:
    def carry() -> None:
        carry_cli("ann@host1")

    assert call(secured, "Shop/Confirm", carry, files=authority.issue(tmp_path / "cli", "cli"))
    for name in ("gateway", "console-desk", "console-dashboard"):
        refused = refusal(secured, "Shop/Balance", carry, files=authority.issue(tmp_path / name, name))
        assert (refused.reason, refused.metadata) == ("ACTOR_INVALID", {"problem": "surface"})
    assert [actor.name for actor, _, _ in secured.refused] == ["gateway", "console-desk", "console-dashboard"]
    act_as("tests@harness")


def test_a_token_counts_for_the_certificate_of_its_surface_only(
    secured: Shop, authority: Authority, tmp_path: Path
) -> None:
    """A dashboard that is taken over can't confirm a deal, whichever token it got."""
    desk, dashboard = (
        authority.issue(tmp_path / name, name) for name in ("console-desk", "console-dashboard")
    )
    token = secured.token()
    assert call(secured, "Shop/Confirm", with_token(token), files=desk)
    gateway = authority.issue(tmp_path / "gateway", "gateway")
    for stolen in (dashboard, gateway):
        refused = refusal(secured, "Shop/Balance", with_token(token), files=stolen)
        assert (refused.reason, refused.metadata) == ("ACTOR_INVALID", {"problem": "surface"})
    own = member(secured, MERCHANT, "owner")
    assert refusal(secured, "Shop/Confirm", own, files=dashboard).reason == "NOT_PERMITTED"
    assert [problem for _, _, problem in secured.refused] == ["surface", "surface", "NOT_PERMITTED"]


def test_the_console_itself_may_make_a_call_that_is_for_no_person_and_no_other_process_may(
    secured: Shop, unnamed: None, authority: Authority, tmp_path: Path
) -> None:
    """A page that stays open is updated without the person's token, which lives for a minute."""
    desk, gateway = (authority.issue(tmp_path / name, name) for name in ("console-desk", "gateway"))
    assert call(secured, "Shop/Watch", files=desk) == "process:console-desk"
    assert refusal(secured, "Shop/Watch", files=gateway).reason == "INTERNAL_ERROR"  # peer_refused
    prices = secured.token(roles=frozenset({"prices"}))
    refused = refusal(secured, "Shop/Watch", lambda: carry_token(prices), files=desk)
    assert refused.reason == "NOT_PERMITTED"


def test_the_console_names_a_person_in_all_but_the_calls_to_sign_in(
    secured: Shop, unnamed: None, authority: Authority, tmp_path: Path
) -> None:
    for name in ("console-desk", "console-dashboard"):
        files = authority.issue(tmp_path / name, name)
        assert call(secured, "Shop/SignIn", files=files) == f"process:{name}"
        for method in ("Shop/Look", "Shop/Create", "Shop/Balance", "Shop/Confirm"):
            refused = refusal(secured, method, files=files)
            assert (refused.reason, refused.metadata) == ("ACTOR_INVALID", {"problem": "missing"}), method


def test_a_call_of_a_person_or_an_operator_is_logged_and_one_of_a_process_only_at_level_debug(
    shop: Shop, unnamed: None
) -> None:
    with capture_logs() as lines:
        call(shop, "Shop/Create")
        call(shop, "Shop/Confirm", with_token(shop.token()))
        call(shop, "Shop/Confirm", lambda: carry_cli("eve@laptop"))
    process, person, operator = [line for line in lines if line["event"] == "rpc_answered"]
    assert [line["log_level"] for line in (process, person, operator)] == ["debug", "info", "info"]
    assert "author" not in process
    assert UUID(person["author"]).version, "the person's id: names are not for logs"
    assert operator["author"] == "cli:eve@laptop"
