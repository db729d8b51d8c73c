"""The whole stack with mTLS: every process has a certificate of its own, and what can't prove a name gets nowhere."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import psycopg2
import pytest
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.local.waiting import wait_until
from fiatgate.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from fiatgate.invoices.v1 import invoices_pb2, invoices_pb2_grpc
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from fiatgate.withdrawals.v1 import withdrawals_pb2, withdrawals_pb2_grpc
from kit.base.services import SERVICES
from kit.base.tls import Files, Identity
from kit.rpc import actors
from kit.rpc.actors import carry_token
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.rpc.server import ALIVE
from tests.faults.arena import Arena
from tests.support.certificates import PROCESSES, Authority
from tests.support.stack import CliRefused, Stack

BUYERS = 4
RENEWED = timedelta(days=4)


class House:
    def __init__(self, arena: Arena) -> None:
        self.stack = arena.stack
        self.certificates = arena.certificates
        self.certificate = arena.certificate

    def buy(self) -> requests.Response:
        body = {
            "amount": "100.50",
            "currency_code": "EUR",
            "customer_id": str(uuid4()),
            "external_id": str(uuid4()),
        }
        return self.stack.request("POST", "/api/v1/create-invoice", json=body)

    def log_of(self, process: str) -> list[dict[str, Any]]:
        lines = (self.stack.home.logs / f"{process}.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def expiries(self) -> list[Decimal]:
        """Of the certificates in use, as each process tells Prometheus: seconds."""
        texts = [
            self._scraped(process, address)
            for process, addresses in self.stack.home.running_stack()["metrics"].items()
            for address in addresses
        ]
        name = "fiatgate_tls_certificate_expires_timestamp_seconds "
        lines = [line for text in texts for line in text.splitlines() if line.startswith(name)]
        assert len(lines) == len(texts) == len(SERVICES) + 4, "the gateway has two workers"
        return [Decimal(line.removeprefix(name)) for line in lines]

    def _scraped(self, process: str, address: str) -> str:
        try:
            return requests.get(f"http://{address}/metrics", timeout=10).text
        except requests.ConnectionError as error:
            raise AssertionError(f"{process} at {address}: {self.log_of(process)[-5:]}") from error


@pytest.fixture(scope="module")
def house(arena: Arena) -> House:
    return House(arena)


Call = Callable[[grpc.Channel], Any]


def invoices_of_anybody(channel: grpc.Channel) -> Any:
    return invoices_pb2_grpc.InvoicesServiceStub(channel).ListInvoices(invoices_pb2.ListInvoicesRequest())


def secrets(channel: grpc.Channel) -> Any:
    stub = merchants_pb2_grpc.MerchantsServiceStub(channel)
    return stub.GetSigningSecrets(merchants_pb2.GetSigningSecretsRequest())


def another_key(channel: grpc.Channel) -> Any:
    stub = merchants_pb2_grpc.MerchantsServiceStub(channel)
    return stub.CreateApiKey(merchants_pb2.CreateApiKeyRequest())


def a_withdrawal(channel: grpc.Channel) -> Any:
    stub = withdrawals_pb2_grpc.WithdrawalsServiceStub(channel)
    return stub.CreateWithdrawal(withdrawals_pb2.CreateWithdrawalRequest())


def answer(house: House, service: str, files: Files | None, call: Call) -> grpc.StatusCode:
    """What becomes of the call with that certificate; with None it comes without TLS."""
    address, options = house.stack.addresses[service], [("grpc.default_authority", service)]
    if files is None:
        channel = grpc.insecure_channel(address, options)
    else:
        trusted = house.certificates["cli"].ca.read_bytes()
        shown = (files.key.read_bytes(), files.certificate.read_bytes())
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(trusted, *shown), options)
    with channel:
        try:
            call(channel)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK


def test_a_purchase_goes_all_the_way_from_the_first_request_to_the_payout(house: House) -> None:
    """By everybody's ways: the gateway, the operator's command, invoices, the engine that signs webhooks."""
    steps = [each["step"] for each in house.stack.cli("demo", "--anyway")]
    assert len(steps) > 5
    assert house.stack.cli("status")


def test_strangers_do_not_get_as_far_as_a_call(house: House, tmp_path: Path) -> None:
    of_others = Authority().issue(tmp_path / "gateway", "gateway")
    for files in (None, of_others):
        assert answer(house, "invoices", files, invoices_of_anybody) == grpc.StatusCode.UNAVAILABLE


def test_a_stolen_certificate_opens_what_its_owner_needs_and_nothing_else(house: House) -> None:
    stolen = house.certificates["webhooks"]
    assert answer(house, "identity", stolen, secrets) == grpc.StatusCode.OK
    assert answer(house, "identity", stolen, another_key) == grpc.StatusCode.PERMISSION_DENIED
    assert answer(house, "withdrawals", stolen, a_withdrawal) == grpc.StatusCode.PERMISSION_DENIED
    assert answer(house, "withdrawals", house.certificates["gateway"], a_withdrawal) == (
        grpc.StatusCode.PERMISSION_DENIED
    )
    told = [line for line in house.log_of("withdrawals") if line["event"] == "peer_refused"]
    assert [line["names"] for line in told] == [["webhooks"], ["gateway"]]
    assert told[0]["method"] == "/fiatgate.withdrawals.v1.WithdrawalsService/CreateWithdrawal"


Answer = tuple[str, dict[str, str]]


def of_person(house: House, caller: str, service: str, token: str, call: Call) -> Answer:
    """What becomes of a person's call with the certificate of `caller`: the reason of the refusal, and its metadata."""

    def do() -> Answer:
        carry_token(token)
        identity = Identity(house.certificates[caller])
        with channel(house.stack.addresses[service], name=service, identity=identity) as opened:
            try:
                call(opened)
            except Refused as refused:
                return refused.reason, dict(refused.metadata)
        return "", {}

    return copy_context().run(do)


def signed_in(house: House, surface: accounts_pb2.Surface.ValueType, **invited: Any) -> str:
    """A token of a new person, by the certificates of the command line and of the surface's console."""
    address = house.stack.addresses["identity"]
    email = f"p{uuid4().hex}@example.com"
    with channel(address, name="identity", identity=Identity(house.certificates["cli"])) as cli:
        request = accounts_pb2.InvitePersonRequest(email=email, name="Eve", **invited)
        link: str = accounts_pb2_grpc.PeopleServiceStub(cli).InvitePerson(request).link

    def accept() -> str:
        actors._carried.set(())  # the console names no operator
        with channel(address, name="identity", identity=Identity(house.certificates[console])) as browser:
            sign_in = accounts_pb2_grpc.SignInServiceStub(browser)
            token = link[-43:]  # 256 bits in base64url
            accepted = sign_in.AcceptInvitation(
                accounts_pb2.AcceptInvitationRequest(token=token, surface=surface)
            )
            session = accounts_pb2.AuthorizeRequest(session_token=accepted.session_token, surface=surface)
            signed: str = sign_in.Authorize(session).actor_token
            return signed

    console = "console-desk" if surface == accounts_pb2.SURFACE_DESK else "console-dashboard"
    return copy_context().run(accept)


def people(channel: grpc.Channel) -> Any:
    return accounts_pb2_grpc.PeopleServiceStub(channel).ListPeople(accounts_pb2.ListPeopleRequest())


def confirmation(channel: grpc.Channel) -> Any:
    request = invoices_pb2.ConfirmDealRequest(deal_id=str(uuid4()))
    return invoices_pb2_grpc.DealDeskServiceStub(channel).ConfirmDeal(request)


def test_a_stolen_token_counts_with_the_certificate_of_its_surface_only(house: House) -> None:
    """So it is worth nothing to another process, and one of the dashboard confirms no deal, whatever certificate is
    stolen with it.
    """
    other_surface = ("ACTOR_INVALID", {"problem": "surface"})
    operator = signed_in(house, accounts_pb2.SURFACE_DESK, roles=["desk"])
    assert of_person(house, "console-desk", "invoices", operator, confirmation)[0] == "DEAL_NOT_FOUND"
    assert of_person(house, "console-dashboard", "identity", operator, people) == other_surface
    assert of_person(house, "cli", "invoices", operator, confirmation) == other_surface
    merchant_id = house.stack.demo["merchant_id"]
    owner = signed_in(house, accounts_pb2.SURFACE_DASHBOARD, merchant_id=merchant_id, member_roles=["owner"])
    assert of_person(house, "cli", "invoices", owner, confirmation) == other_surface
    for name in ("console-dashboard", "gateway"):
        certificate = house.certificates[name]
        assert answer(house, "invoices", certificate, confirmation) == grpc.StatusCode.PERMISSION_DENIED
    with closing(psycopg2.connect(house.stack.database_urls["invoices"])) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT actor_name, merchant_id::text, refused, note FROM acts WHERE act = 'call.refused'"
        )
        authors = [(row[0].rpartition("@")[2], *row[1:]) for row in cursor.fetchall()]
    recorded = ("ACTOR_INVALID", "problem: surface")
    assert authors == [("example.com", None, *recorded), ("example.com", merchant_id, *recorded)]


def keeps_heads_of(house: House, service: str) -> set[str]:
    """The services whose heads of acts this one keeps."""
    with (
        closing(psycopg2.connect(house.stack.superuser_url(service))) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT DISTINCT service FROM act_heads")
        return {service for (service,) in cursor.fetchall()}


def test_identity_and_each_other_service_keep_each_others_heads_of_acts(house: House) -> None:
    others = set(SERVICES) - {"identity"}
    wait_until(
        lambda: (
            keeps_heads_of(house, "identity") == others
            and all(keeps_heads_of(house, each) == {"identity"} for each in others)
        ),
        "the heads",
        timeout_seconds=60,
    )


def test_no_process_gives_identity_the_head_of_another(house: House) -> None:
    def head_of_invoices(channel: grpc.Channel) -> Any:
        stub = accounts_pb2_grpc.HeadsServiceStub(channel)
        return stub.KeepHead(accounts_pb2.KeepHeadRequest(service="invoices", count=0, hash=bytes(32)))

    def told_by(process: str) -> grpc.StatusCode:
        return answer(house, "identity", house.certificates[process], head_of_invoices)

    assert told_by("catalog") == grpc.StatusCode.INVALID_ARGUMENT
    assert told_by("gateway") == told_by("console-desk") == grpc.StatusCode.PERMISSION_DENIED


def test_an_operator_needs_a_certificate_too(house: House) -> None:
    plain = Stack(house.stack.home.folder)
    with pytest.raises(CliRefused, match="SERVICE_DOWN"):
        plain.cli("merchants", "list")


def test_probes_need_none(house: House) -> None:
    with grpc.insecure_channel(house.stack.settings["FIATGATE_INVOICES_HEALTH_BIND"]) as channel:
        request = health_pb2.HealthCheckRequest(service=ALIVE)
        answered = health_pb2_grpc.HealthStub(channel).Check(request, timeout=5)
        assert answered.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as refused:
            invoices_of_anybody(channel)
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_all_certificates_are_renewed_while_merchants_buy_and_no_request_fails(house: House) -> None:
    before = house.expiries()
    enough = threading.Event()
    failed: list[str] = []
    bought = [0] * BUYERS

    def buy(number: int) -> None:
        while not enough.is_set():
            response = house.buy()
            if response.status_code != 201:
                failed.append(response.text)
            bought[number] += 1

    with ThreadPoolExecutor(BUYERS) as buyers:
        buying = [buyers.submit(buy, number) for number in range(BUYERS)]
        try:
            wait_until(lambda: min(bought) > 5, "buyers to buy", timeout_seconds=30)
            for name in PROCESSES:
                house.certificate(name, lasting=RENEWED)
            wait_until(
                lambda: min(house.expiries()) > max(before),
                "all processes to show the new ones",
                timeout_seconds=30,
            )
            then = list(bought)
            wait_until(
                lambda: all(now > count + 5 for now, count in zip(bought, then, strict=True)),
                "buyers to go on",
                timeout_seconds=30,
            )
        finally:
            enough.set()
        for each in buying:
            each.result()
    assert failed == []
