"""People from their invitation to their calls of services: `fiatgate people` and the processes of a whole stack."""

from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1.accounts_pb2_grpc import OwnAccountServiceStub, PeopleServiceStub, SignInServiceStub
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.rpc.actors import carry_token
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from tests.cli.command_line import Fiatgate, run

DESK = pb.SURFACE_DESK
BROWSER = pb.Client(address="192.0.2.7", user_agent="Browser")
PASSWORD = "tundra violin obelisk"


class Console:
    def __init__(self, fiatgate: Fiatgate) -> None:
        of_accounts = channel(fiatgate.stack.addresses["identity"], name="identity")
        of_merchants = channel(fiatgate.stack.addresses["identity"], name="identity")
        self.channels = (of_accounts, of_merchants)
        self.sign_in = SignInServiceStub(of_accounts)
        self.own = OwnAccountServiceStub(of_accounts)
        self.people = PeopleServiceStub(of_accounts)
        self.merchants = MerchantsServiceStub(of_merchants)
        self.cookie = ""

    def open(self, link: str) -> None:
        (token,) = parse_qs(urlsplit(link).query)["token"]
        request = pb.AcceptInvitationRequest(token=token, surface=DESK, client=BROWSER)
        self.cookie = self.sign_in.AcceptInvitation(request).session_token

    def authorized(self) -> pb.AuthorizeResponse:
        return self.sign_in.Authorize(pb.AuthorizeRequest(session_token=self.cookie, surface=DESK))

    def call(self, method: Callable[[Any], Any], request: Any, *, token: str = "") -> Any:
        """One call of the person, with a token of its own unless one is given."""
        given = token or self.authorized().actor_token

        def called() -> Any:
            carry_token(given)
            return method(request)

        return copy_context().run(called)

    def reason(self, method: Callable[[Any], Any], request: Any, *, token: str = "") -> str:
        with pytest.raises(Refused) as caught:
            self.call(method, request, token=token)
        return caught.value.reason


@pytest.fixture
def console(fiatgate: Fiatgate) -> Iterator[Console]:
    made = Console(fiatgate)
    yield made
    for each in made.channels:
        each.close()


@pytest.fixture
def email() -> str:
    return f"{new_id().hex}@example.com"


LIST = merchants_pb2.ListMerchantsRequest(limit=1)


def test_an_operator_is_invited_signs_in_and_calls_services(
    fiatgate: Fiatgate, console: Console, email: str
) -> None:
    invited = run("people", "invite", email, "--name", "Ann", "--role", "viewer")
    assert (invited.exit_code, invited.err) == (0, "")
    assert invited.out.startswith(f"Send this link to {email}.")
    console.open(invited.out.split()[-1])
    (listed,) = [each for each in fiatgate("people", "list") if each["email"] == email]
    assert (listed["roles"], listed["state"]) == (["viewer"], "without factors")

    assert console.call(console.merchants.ListMerchants, LIST).merchants
    ban = merchants_pb2.BanMerchantRequest(merchant_id=str(new_id()))
    assert console.reason(console.merchants.BanMerchant, ban) == "NOT_PERMITTED"
    fiatgate.by_two_if_needed("people", "roles", email, "--role", "admin", "--role", "viewer")
    assert (
        console.reason(console.merchants.BanMerchant, ban) == "MERCHANT_NOT_FOUND"
    )  # from the next request on

    token = console.authorized().actor_token
    head, claims, signature = token.split(".")
    for forged in (f"{head}.{claims}.{signature[::-1]}", f"{head}.{claims[::-1]}.{signature}", "x"):
        assert console.reason(console.merchants.ListMerchants, LIST, token=forged) == "ACTOR_INVALID"

    (session,) = fiatgate("people", "sessions", email)
    assert (session["way"], session["client"]["address"]) == ("invitation", "192.0.2.7")
    assert "has ended" in fiatgate.shown("people", "end-session", session["session_id"][:-2])
    with pytest.raises(Refused, match="SESSION_INVALID"):
        console.authorized()
    assert fiatgate.refused("people", "end-session", session["session_id"]) == "SESSION_NOT_FOUND"


def test_tokens_live_on_while_the_signing_key_is_replaced(
    fiatgate: Fiatgate, console: Console, email: str
) -> None:
    console.open(fiatgate("people", "invite", email, "--name", "Ann", "--role", "viewer")["link"])
    before = console.authorized().actor_token
    made = fiatgate("actor-keys", "rotate")["key_id"]
    assert console.call(console.merchants.ListMerchants, LIST, token=before).merchants
    assert console.call(console.merchants.ListMerchants, LIST).merchants
    assert console.call(console.own.ListFactors, pb.ListFactorsRequest(), token=before) is not None
    assert made


def test_a_person_sets_factors_and_comes_back_with_them(
    fiatgate: Fiatgate, console: Console, email: str
) -> None:
    invited = fiatgate.by_two_if_needed("people", "invite", email, "--name", "Ann", "--role", "admin")
    console.open(invited["link"])
    console.call(console.own.SetPassword, pb.SetPasswordRequest(password=PASSWORD))
    secret = console.call(console.own.StartTotp, pb.StartTotpRequest()).secret
    totp = pyotp.TOTP(secret)
    console.call(console.own.ConfirmTotp, pb.ConfirmTotpRequest(code=totp.at(SystemClock().now())))
    codes = console.call(console.own.MakeRecoveryCodes, pb.MakeRecoveryCodesRequest()).codes
    assert console.authorized().has_complete_factors
    console.sign_in.SignOut(pb.SignOutRequest(session_token=console.cookie))
    with pytest.raises(Refused, match="SESSION_INVALID"):
        console.authorized()

    def sign_in(code: str) -> str:
        request = pb.SignInByPasswordRequest(
            email=email, password=PASSWORD, code=code, surface=DESK, client=BROWSER
        )
        return console.sign_in.SignInByPassword(request).session_token

    with pytest.raises(Refused, match="SIGN_IN_REFUSED"):
        sign_in(totp.at(SystemClock().now()))  # the code that confirmed it
    console.cookie = sign_in(codes[0])
    assert console.authorized().way == "recovery_code"
    invite = pb.InvitePersonRequest(email=f"{new_id().hex}@example.com", name="Ben", roles=["desk"])
    assert (
        console.reason(console.people.InvitePerson, invite) == "STEP_UP_REQUIRED"
    )  # a recovery code is none


def test_invitations_are_listed_and_withdrawn_and_people_disabled(
    fiatgate: Fiatgate, console: Console, email: str
) -> None:
    made = fiatgate("people", "invite", email, "--name", "Ann", "--role", "desk")
    id = made["invitation"]["invitation_id"]
    assert id in {each["invitation_id"] for each in fiatgate("people", "invitations")}
    fiatgate("people", "withdraw", id[:-2])
    assert fiatgate.refused("people", "withdraw", id) == "INVITATION_NOT_FOUND"
    with pytest.raises(Refused, match="INVITATION_INVALID"):
        console.open(made["link"])

    assert fiatgate.refused("people", "disable", email) == "PERSON_NOT_FOUND"
    console.open(fiatgate("people", "invite", email, "--name", "Ann", "--role", "desk")["link"])
    assert "can't sign in" in fiatgate.shown("people", "disable", email)
    with pytest.raises(Refused, match="SESSION_INVALID"):
        console.authorized()
    shown = fiatgate("people", "show", email)
    assert shown["disabled"] is True
    refused = run("categories", "list", "--as", email)
    assert refused.exit_code == 2
    assert "disabled" in refused.err
    assert fiatgate("people", "show", shown["person_id"][:-2]) == shown
    fiatgate("people", "enable", email)
    assert fiatgate("people", "roles", email, "--none")["roles"] == []
    assert run("people", "roles", email).exit_code == 2


def test_members_of_a_merchant_are_invited_and_listed_there(fiatgate: Fiatgate, email: str) -> None:
    merchant = fiatgate.stack.demo["merchant_id"]
    made = fiatgate("people", "invite", email, "--name", "Bob", "--role", "finance", "--merchant", merchant)
    assert made["invitation"]["memberships"] == [{"merchant_id": merchant, "roles": ["finance"]}]
    shown = fiatgate("people", "invitations", "--merchant", merchant)
    assert email in {each["email"] for each in shown}
    assert email not in {each["email"] for each in fiatgate("people", "invitations")}
    members = {each["email"] for each in fiatgate("people", "list", "--merchant", merchant)}
    assert email not in members, "before the link is used"
