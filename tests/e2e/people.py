"""People who are signed in, and the services that they reach, without certificates."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg2
import pytest

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc as pb_grpc
from fiatgate.invoices.v1.invoices_pb2_grpc import DealDeskServiceStub
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from fiatgate.status.v1.status_pb2_grpc import StatusServiceStub
from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
from kit.base.ids import new_id
from kit.rpc.actors import carry_token
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from tests.support.stack import Stack

T = TypeVar("T")


def named(token: str, call: Callable[[], T]) -> T:
    def do() -> T:
        carry_token(token)
        return call()

    return copy_context().run(do)


def refusal(token: str, call: Callable[[], object]) -> tuple[str, dict[str, str]]:
    with pytest.raises(Refused) as raised:
        named(token, call)
    return raised.value.reason, dict(raised.value.metadata)


@dataclass
class Person:
    house: House
    email: str
    surface: pb.Surface.ValueType
    session_token: str

    def token(self) -> str:
        request = pb.AuthorizeRequest(session_token=self.session_token, surface=self.surface)
        token: str = self.house.sign_in.Authorize(request).actor_token
        return token


class House:
    """The services that people reach, and the acts that these have written."""

    def __init__(self, stack: Stack, opened: ExitStack) -> None:
        def to(service: str) -> Any:
            return opened.enter_context(channel(stack.addresses[service], name=service))

        self.stack = stack
        accounts, invoices = to("identity"), to("invoices")
        self.sign_in = pb_grpc.SignInServiceStub(accounts)
        self.people = pb_grpc.PeopleServiceStub(accounts)
        self.keys = pb_grpc.ActorKeysServiceStub(accounts)
        self.desk = DealDeskServiceStub(invoices)
        self.merchants = MerchantsServiceStub(to("identity"))
        self.withdrawals = WithdrawalsServiceStub(to("withdrawals"))
        self.statuses = {service: StatusServiceStub(to(service)) for service in stack.addresses}

    def staff(self, *roles: str) -> Person:
        return self._person(pb.SURFACE_DESK, roles=roles)

    def member(self, merchant_id: str, *roles: str) -> Person:
        return self._person(pb.SURFACE_DASHBOARD, merchant_id=merchant_id, member_roles=roles)

    def _person(self, surface: pb.Surface.ValueType, **given: Any) -> Person:
        email = f"p{new_id().hex}@example.com"
        invited = self.people.InvitePerson(pb.InvitePersonRequest(email=email, name="Eve", **given))
        token = invited.link[-43:]  # 256 bits in base64url
        accepted = self.sign_in.AcceptInvitation(pb.AcceptInvitationRequest(token=token, surface=surface))
        return Person(self, email, surface, accepted.session_token)

    def acts(self, service: str, condition: str, *values: str) -> list[tuple[Any, ...]]:
        """(act, object, author, merchant, reason of the refusal, note), oldest first."""
        columns = "act, object, actor_name, merchant_id::text, refused, note"
        query = f"SELECT {columns} FROM acts WHERE {condition} ORDER BY id"
        with (
            closing(psycopg2.connect(self.stack.database_urls[service])) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(query, values)
            return cursor.fetchall()
