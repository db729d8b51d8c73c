"""Requests for a second person: what the functions refuse, and what the database refuses past them."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Barrier
from typing import Any, Final
from uuid import UUID

import psycopg2
import psycopg2.errors
import pytest
from sqlalchemy import text

from fiatgate.approvals.v1 import approvals_pb2 as pb
from fiatgate.audit.v1 import audit_pb2
from kit.audit import acts, approval_books, approval_lists, approvals
from kit.audit.approval_lists import Filter
from kit.audit.approvals import AlreadyDecided, Approval, NoPerson, NotFound, SameAuthor, State, Terms
from kit.base import actors
from kit.base.actors import Actor
from kit.base.clock import Clock
from kit.base.ids import new_id
from kit.db.books import check_page
from kit.db.database import Database
from kit.rpc.approvals import ApprovalsServicer, filter_from_message
from kit.rpc.audit import AuditServicer
from tests.support.acting import acting, refusal
from tests.support.clock import START, ManualClock
from tests.support.databases import owner_url, past_all_rules
from tests.support.signing import SEALS

ANN = Actor(kind="person", name="ann@example.com", surface="desk", person_id=uuid.uuid4())
BEN = Actor(kind="person", name="ben@example.com", surface="desk", person_id=uuid.uuid4())
SHELL = Actor(kind="cli", name="root@bastion")
SHELL_AS_ANN = Actor(kind="cli", name="root@bastion", on_behalf_of="Ann@Example.com")
PROGRAM = Actor(kind="api", name="gateway")
TIMER = Actor(kind="process", name="expiry")


COPY: Final = text(
    "INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note, state)"
    " SELECT :id, act, :object, summary, request, requested_by, requested_as, requested_at, note, state"
    " FROM approvals WHERE id = :of"
)
NO_CONTEXT: Any = None
INVALID: Final = "VALIDATION_ERROR"


@dataclass
class Parts:
    db: Database
    clock: Clock


@pytest.fixture(scope="module")
def db(database_url: Callable[[str], str]) -> Iterator[Database]:
    database = Database(database_url("withdrawals"), name="tests", pool_size=8, seals=SEALS)
    yield database
    database.dispose()


def terms(object: str = "", amount: str = "5") -> Terms:
    object = object or f"thing:{uuid.uuid4()}"
    return Terms(
        act="thing.change", object=object, request={"amount": amount}, summary=f"Change to {amount}."
    )


def request(db: Database, actor: Actor, wanted: Terms | None = None) -> Approval:
    actors.bind(actor)
    with db.transaction() as tx:
        return approvals.request(tx, wanted or terms(), at=START, note="as agreed")


def approve(db: Database, actor: Actor, asked: Approval, made: list[str] | None = None) -> Approval:
    actors.bind(actor)
    changes: list[str] = [] if made is None else made
    with db.transaction() as tx:
        return approvals.approve(
            tx, asked.id, at=START, note="seen", change=lambda each: changes.append(each.request["amount"])
        ).approval


def reject(db: Database, actor: Actor, asked: Approval) -> Approval:
    actors.bind(actor)
    with db.transaction() as tx:
        return approvals.reject(tx, asked.id, at=START, note="no")


def stored(db: Database, asked: Approval) -> Approval:
    with db.transaction() as tx:
        return approvals.get(tx, asked.id)


# -- requesting


def test_a_request_has_its_author_and_waits(db: Database) -> None:
    asked = request(db, ANN)
    assert (asked.state, asked.requested_by, asked.requested_person) == (
        State.PENDING,
        "ann@example.com",
        ANN.person_id,
    )
    assert stored(db, asked) == asked


def test_the_same_call_again_finds_the_same_request_and_so_does_another_person(db: Database) -> None:
    first = request(db, ANN, wanted := terms())
    assert request(db, ANN, wanted) == request(db, BEN, wanted) == first


def test_an_object_has_one_pending_request_also_when_many_request_at_once(db: Database) -> None:
    wanted, barrier = terms(), Barrier(6)

    def at_once(number: int) -> uuid.UUID:
        barrier.wait(10)
        return request(db, Actor(kind="cli", name=f"user{number}@host"), wanted).id

    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(at_once, range(6)))) == 1


def test_another_change_of_the_object_is_seen_to_be_another_one(db: Database) -> None:
    first = request(db, ANN, terms("thing:1", "5"))
    pending = request(db, BEN, other := terms("thing:1", "6"))
    assert pending == first
    assert not pending.asks_for(other)


@pytest.mark.parametrize("program", [PROGRAM, TIMER])
def test_a_program_neither_requests_nor_approves(db: Database, program: Actor) -> None:
    with pytest.raises(NoPerson):
        request(db, program)
    asked = request(db, ANN)
    with pytest.raises(NoPerson):
        approve(db, program, asked)
    assert stored(db, asked).state is State.PENDING


# -- deciding


def test_another_person_approves_and_the_change_is_made_once(db: Database) -> None:
    asked, made = request(db, ANN), list[str]()
    approved = approve(db, BEN, asked, made)
    assert (approved.state, approved.decided_by, approved.decision_note, made) == (
        State.APPROVED,
        "ben@example.com",
        "seen",
        ["5"],
    )
    assert approve(db, BEN, asked, made) == approved  # the answer was lost
    assert made == ["5"]


@pytest.mark.parametrize(
    ("maker", "checker"),
    [
        (ANN, ANN),
        (ANN, SHELL_AS_ANN),
        (SHELL_AS_ANN, ANN),
        (SHELL, SHELL),
        (ANN, SHELL),
        (SHELL_AS_ANN, SHELL),
        (ANN, Actor(kind="person", name="renamed@example.com", person_id=ANN.person_id)),
        (ANN, Actor(kind="person", name=" ANN@EXAMPLE.COM", person_id=uuid.uuid4())),
    ],
    ids=[
        "person",
        "named-by-as",
        "as-then-person",
        "shell",
        "person-then-shell",
        "as-then-shell",
        "renamed",
        "same-address",
    ],
)
def test_the_maker_is_no_checker(db: Database, maker: Actor, checker: Actor) -> None:
    asked, made = request(db, maker), list[str]()
    with pytest.raises(SameAuthor):
        approve(db, checker, asked, made)
    assert made == []
    assert stored(db, asked).state is State.PENDING


def test_of_two_checkers_at_once_one_makes_the_change(db: Database) -> None:
    asked, barrier = request(db, ANN), Barrier(2)
    with db.transaction() as tx:
        tx.execute(text("UPDATE withdrawal_methods SET name = '' WHERE id = 1"))

    def at_once(name: str) -> str:
        actors.bind(Actor(kind="cli", name="eve@laptop", on_behalf_of=name))
        barrier.wait(10)

        def change(_asked: Approval) -> None:
            tx.execute(
                text("UPDATE withdrawal_methods SET name = name || :name WHERE id = 1"), {"name": name}
            )

        try:
            with db.transaction() as tx:
                approvals.approve(tx, asked.id, at=START, note="", change=change)
        except AlreadyDecided:
            return ""
        return name

    with ThreadPoolExecutor(2) as threads:
        winners = "".join(threads.map(at_once, ["ben", "cid"]))
    with db.autocommit() as connection:
        changed = connection.scalar(text("SELECT name FROM withdrawal_methods WHERE id = 1"))
    assert winners in ("ben", "cid")
    assert changed == winners


def test_a_change_that_fails_leaves_the_request_pending(db: Database) -> None:
    asked = request(db, ANN)
    actors.bind(BEN)

    def fail(_asked: Approval) -> None:
        raise LookupError("not any more")

    with pytest.raises(LookupError), db.transaction() as tx:
        approvals.approve(tx, asked.id, at=START, note="", change=fail)
    assert stored(db, asked) == asked


def test_a_rejected_request_is_kept_and_leaves_room_for_the_next(db: Database) -> None:
    asked = request(db, ANN, wanted := terms())
    rejected = reject(db, ANN, asked)  # the requester withdraws it
    assert (rejected.state, rejected.decided_by) == (State.REJECTED, "ann@example.com")
    assert reject(db, ANN, asked) == rejected
    with pytest.raises(AlreadyDecided):
        approve(db, BEN, asked)
    with pytest.raises(AlreadyDecided):
        reject(db, BEN, asked)
    again = request(db, ANN, wanted)
    assert again.id != asked.id
    with db.transaction() as tx:
        of_object = Filter(object=wanted.object)
        assert approval_lists.page(tx, of_object, limit=9) == [again, rejected]
        assert approval_lists.page(tx, replace(of_object, states=(State.REJECTED,)), limit=9) == [rejected]


def test_requests_are_listed_page_by_page_in_both_orders(db: Database) -> None:
    first, second, third = (request(db, ANN, terms()) for _ in range(3))
    outside = first.id.int - 1  # of another database: the lists of several services are merged by id
    with db.transaction() as tx:
        oldest_first = Filter(states=(State.PENDING,), after=UUID(int=outside), oldest_first=True)
        assert approval_lists.page(tx, oldest_first, limit=2) == [first, second]
        assert approval_lists.page(tx, replace(oldest_first, after=second.id), limit=2) == [third]
        assert approval_lists.page(tx, Filter(), limit=2) == [third, second]
        assert approval_lists.page(tx, Filter(after=second.id), limit=1) == [first]


def test_the_waiting_requests_about_a_merchant_are_listed_however_many_others_wait(db: Database) -> None:
    merchant = uuid.uuid4()
    asked = request(db, ANN, replace(terms(), merchant_id=merchant))
    request(db, ANN, replace(terms(), merchant_id=uuid.uuid4()))
    message = pb.ListApprovalsRequest(state=pb.APPROVAL_STATE_PENDING, merchant_id=str(merchant))
    with db.transaction() as tx:
        assert approval_lists.page(tx, filter_from_message(message), limit=1) == [asked]
    message.state = pb.APPROVAL_STATE_APPROVED
    assert refusal(filter_from_message, message).metadata["field"] == "merchant_id"


def test_a_request_is_closed_by_a_change_that_makes_it_pointless(db: Database) -> None:
    asked = request(db, ANN)
    actors.bind(TIMER)
    with db.transaction() as tx:
        approvals.close(tx, asked.object, at=START, note="the thing has ended")
    closed = stored(db, asked)
    assert (closed.state, closed.decided_as, closed.decision_note) == (
        State.REJECTED,
        "process:expiry",
        "the thing has ended",
    )


def test_an_unknown_request_is_not_found(db: Database) -> None:
    with pytest.raises(NotFound), db.transaction() as tx:
        approvals.reject(tx, new_id(), at=START, note="")


def test_the_beginning_of_an_id_finds_its_request(db: Database) -> None:
    asked = request(db, ANN)
    servicer = ApprovalsServicer("tests", Parts(db=db, clock=ManualClock()), {})

    def found(beginning: str) -> str:
        answer = servicer.GetApproval(pb.GetApprovalRequest(approval_id=beginning), NO_CONTEXT)
        return answer.approval.approval_id

    assert (
        found(str(asked.id)) == found(str(asked.id)[:-2].upper()) == found(asked.id.hex[:30]) == str(asked.id)
    )
    for beginning, reason in (
        ("ffff", "APPROVAL_NOT_FOUND"),
        ("019", "VALIDATION_ERROR"),
        ("thing", "VALIDATION_ERROR"),
    ):
        assert refusal(found, beginning).reason == reason

    ids = [uuid.UUID(f"feed{number:028x}") for number in range(2)]
    with db.transaction() as tx:
        for each in ids:
            tx.execute(COPY, {"id": each, "object": f"thing:{each}", "of": asked.id})
    assert all(str(each) in refusal(found, "feed").message for each in ids)


def test_the_oldest_pending_request_is_counted(db: Database) -> None:
    request(db, ANN)
    with db.autocommit() as connection:
        waiting = approval_lists.waiting(connection)
    assert waiting.count >= 1
    assert waiting.oldest == START


def test_each_step_of_a_request_is_an_act_of_its_author_on_the_object(db: Database) -> None:
    reject(db, BEN, first := request(db, ANN, wanted := terms()))
    request(db, ANN, wanted)
    approve(db, BEN, second := request(db, BEN, wanted))  # the pending one of Ann
    approve(db, BEN, second)
    with db.autocommit() as connection:
        found = connection.execute(
            text(
                "SELECT act, actor_name, changes -> 0 ->> 2, note FROM acts WHERE object = :object ORDER BY id"
            ),
            {"object": wanted.object},
        ).all()
    assert [tuple(each) for each in found] == [
        ("approval.request", ANN.name, str(first.id), "as agreed"),
        ("approval.reject", BEN.name, str(first.id), "no"),
        ("approval.request", ANN.name, str(second.id), "as agreed"),
        ("approval.approve", BEN.name, str(second.id), "seen"),
    ]


def test_members_of_the_merchant_see_the_change_and_no_request(db: Database) -> None:
    """A request has the whole sentence of a change that is not decided."""
    merchant_id = new_id()
    reject(db, BEN, request(db, ANN, wanted := replace(terms(), merchant_id=merchant_id)))
    approve(db, BEN, request(db, ANN, wanted))
    with db.transaction() as tx:
        acts.record(tx, wanted.act, wanted.object, merchant_id=merchant_id, after={"amount": "5"})

    def seen_by(actor: Actor, act: str = "") -> list[str]:
        asked = audit_pb2.ListActsRequest(merchant_id=str(merchant_id), act=act, limit=2)
        servicer = AuditServicer(db, "withdrawals", ManualClock())
        found = acting(actor, lambda: servicer.ListActs(asked, NO_CONTEXT))
        return [each.act for each in found.acts]

    owner = replace(ANN, surface="dashboard", merchant_id=merchant_id)
    assert seen_by(owner) == ["thing.change"]
    assert seen_by(owner, "approval") == seen_by(owner, "approval.request") == []
    assert seen_by(BEN) == ["thing.change", "approval.approve"]


# -- past the functions

APPROVE = (
    "UPDATE approvals SET state = 'approved', decided_by = requested_by, decided_as = 'x', decided_at = now()"
)


def execute(url: str, statement: str, asked: Approval) -> None:
    connection = psycopg2.connect(url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement, {"id": str(asked.id)})
    finally:
        connection.close()


@pytest.mark.parametrize("all_rules", [True, False])
def test_the_database_refuses_the_maker_as_checker(
    db: Database, database_url: Callable[[str], str], all_rules: bool
) -> None:
    url = database_url("withdrawals")
    asked = request(db, ANN)
    with pytest.raises(psycopg2.errors.CheckViolation, match="ck_approvals_other_person"):
        execute(url if all_rules else past_all_rules(url), f"{APPROVE} WHERE id = %(id)s", asked)
    same_person = APPROVE.replace("= requested_by", "= 'other'") + ", decided_person = requested_person"
    with pytest.raises(psycopg2.errors.CheckViolation, match="ck_approvals_other_person"):
        execute(url, f"{same_person} WHERE id = %(id)s", asked)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE approvals SET request = '{}' WHERE id = %(id)s",
        "UPDATE approvals SET summary = 'Change nothing.' WHERE id = %(id)s",
        "UPDATE approvals SET requested_by = 'x' WHERE id = %(id)s",
        "DELETE FROM approvals WHERE id = %(id)s",
        "TRUNCATE approvals",
        "INSERT INTO approvals SELECT gen_random_uuid(), act, object, merchant_id, summary, request, 'x', NULL, 'x',"
        " requested_at, note, 'approved', 'y', NULL, 'y', now(), '' FROM approvals WHERE id = %(id)s",
    ],
    ids=["request", "summary", "requester", "delete", "truncate", "approved-at-once"],
)
def test_the_database_keeps_every_request_as_it_was_made(
    db: Database, database_url: Callable[[str], str], statement: str
) -> None:
    asked = request(db, ANN)
    for url in (database_url("withdrawals"), owner_url(database_url("withdrawals"))):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(url, statement, asked)
    assert stored(db, asked) == asked


def test_the_database_keeps_a_decision(db: Database, database_url: Callable[[str], str]) -> None:
    asked = reject(db, BEN, request(db, ANN))
    approved = APPROVE.replace("= requested_by", "= 'ben@example.com'")
    for url in (database_url("withdrawals"), owner_url(database_url("withdrawals"))):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="final"):
            execute(url, f"{approved} WHERE id = %(id)s", asked)


@pytest.mark.parametrize(
    "change",
    [
        "decided_by = 'zed@example.com'",
        "decided_as = 'zed@example.com'",
        "decided_at = decided_at - interval '1 day'",
        "decision_note = 'x'",
    ],
)
def test_verify_names_a_decision_that_is_not_that_of_its_act(
    db: Database, database_url: Callable[[str], str], change: str
) -> None:
    asked = request(db, ANN)
    approve(db, BEN, asked)
    assert approval_problems(db, asked) == []
    with db.transaction() as tx:
        assert approvals.is_approved(tx, asked.id, act="thing.change")
    past_rules(database_url, f"UPDATE approvals SET {change} WHERE id = '{asked.id}'")
    assert approval_problems(db, asked) == ["decision"]
    with db.transaction() as tx:
        assert not approvals.is_approved(tx, asked.id, act="thing.change")


@pytest.mark.parametrize("decide", [lambda db, asked: asked, lambda db, asked: reject(db, BEN, asked)])
def test_verify_names_a_deleted_request(
    db: Database, database_url: Callable[[str], str], decide: Callable[[Database, Approval], Approval]
) -> None:
    asked = request(db, ANN)
    decide(db, asked)
    past_rules(database_url, f"DELETE FROM approvals WHERE id = '{asked.id}'")
    assert approval_problems(db, asked) == ["row"]


def past_rules(database_url: Callable[[str], str], statement: str) -> None:
    with psycopg2.connect(past_all_rules(database_url("withdrawals"))) as owner, owner.cursor() as cursor:
        cursor.execute(statement)


def approval_problems(db: Database, asked: Approval) -> list[str]:
    problems = check_page(db, approval_books.PART, after="", limit=1000).problems
    return [each.field for each in problems if each.subject == f"request {asked.id}"]


def test_an_approval_that_sql_wrote_is_not_told_as_done(db: Database) -> None:
    asked = request(db, ANN)
    with db.transaction() as tx:
        tx.execute(
            text(
                "UPDATE approvals SET state = 'approved', decided_by = :by, decided_as = :by, decided_at = now()"
                " WHERE id = :id"
            ),
            {"by": BEN.name, "id": asked.id},
        )
    with pytest.raises(AlreadyDecided):
        approve(db, BEN, asked)
