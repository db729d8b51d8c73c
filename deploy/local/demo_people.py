"""Links by which the demo people sign in: `python -m deploy.local.demo_people HOME`, at each start.

The demo operator and the owner of the demo merchant get a new link for one use as long as they have no way to sign in
by themselves. An operator's changes stay: a person keeps their roles, and one who is disabled, or has no role any more,
gets no link.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from deploy.local.home import Home, write_private_json
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1.accounts_pb2_grpc import PeopleServiceStub
from kit.base.config.processes import CliSettings
from kit.base.config.variables import load
from kit.rpc import actors
from kit.rpc.client import channel
from kit.rpc.errors import Refused

OPERATOR = "operator@fiatgate.example"


@retry(
    retry=retry_if_exception(lambda error: isinstance(error, Refused) and error.reason == "DB_UNAVAILABLE"),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.1),
    reraise=True,
)
def invite(home: Home, stack: dict[str, Any]) -> None:
    """Writes the links to `links.json`; None for a person who needs no link, or got it by e-mail.

    Waits for accounts. Raises kit.rpc.errors.Refused.
    """
    demo = home.demo()
    if demo is None:
        raise RuntimeError(f"{home.demo_file} is missing")
    address = stack["services"]["accounts"]["address"]
    with channel(address, name="accounts", identity=load(CliSettings).identity) as accounts:
        people = PeopleServiceStub(accounts)
        operator = pb.InvitePersonRequest(email=OPERATOR, name="Demo operator", roles=["admin"])
        owner = pb.InvitePersonRequest(
            email=demo["owner_email"],
            name="Owner of the demo shop",
            merchant_id=demo["merchant_id"],
            member_roles=["owner"],
        )
        links = {"desk": _link(people, operator), "dashboard": _link(people, owner)}
    write_private_json(home.links_file, links)


def _link(people: PeopleServiceStub, wanted: pb.InvitePersonRequest) -> str | None:
    request = _as_they_are_now(people, wanted)
    try:
        return None if request is None else people.InvitePerson(request).link or None
    except Refused as refused:
        if refused.reason == "DB_UNAVAILABLE":
            raise
        return (
            None  # an administrator needs a second pair of eyes, for example: the stack starts all the same
        )


def _as_they_are_now(
    people: PeopleServiceStub, wanted: pb.InvitePersonRequest
) -> pb.InvitePersonRequest | None:
    """Returns the invitation with the roles that the person has; None when the person gets none."""
    try:
        person = people.GetPerson(pb.GetPersonRequest(person=wanted.email)).person
    except Refused as refused:
        if refused.reason == "PERSON_NOT_FOUND":
            return wanted
        raise
    of_merchant = [each for each in person.memberships if each.merchant_id == wanted.merchant_id]
    roles = (
        [*person.roles] if not wanted.merchant_id else [role for each in of_merchant for role in each.roles]
    )
    if person.disabled or person.has_complete_factors or not roles:
        return None
    return pb.InvitePersonRequest(
        email=wanted.email,
        name=person.name,
        merchant_id=wanted.merchant_id,
        roles=[] if wanted.merchant_id else roles,
        member_roles=roles if wanted.merchant_id else [],
    )


if __name__ == "__main__":
    _home = Home(Path(sys.argv[1]))
    actors.carry_cli(f"make-run@{socket.gethostname()}")
    invite(_home, _home.running_stack())
