"""E-mails go out through a real SMTP server: the link of an invitation, and nowhere else; notices to owners."""

from __future__ import annotations

import email
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg2
import pytest
from aiosmtpd.controller import Controller
from sqlalchemy import text

from deploy.local.ports import free_ports
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.identity.clients import MailFailed, MailServer
from services.identity.config import IdentitySettings
from services.identity.credentials.actor_keys import KeptKey
from services.identity.domain.people import Surface
from services.identity.operations import accepting, invitations, mailing, notices
from services.identity.wiring import Deps
from tests.identity.people.conftest import DASHBOARD_URL, DESK_URL
from tests.identity.people.house import BROWSER, authorize, invite_staff, member
from tests.support.clock import ManualClock
from tests.support.databases import past_all_rules

SENDER = "fiatgate@example.com"


@dataclass
class Inbox:
    """An aiosmtpd handler that keeps what it takes; `answer` refuses instead."""

    answer: str = ""
    mails: list[Any] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.answer:
            return self.answer
        self.mails.append((envelope.rcpt_tos, email.message_from_bytes(envelope.content)))
        return "250 OK"


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def smtp(inbox: Inbox) -> Iterator[Controller]:
    controller = Controller(inbox, hostname="127.0.0.1", port=free_ports(1)[0])
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def server(smtp: Controller) -> MailServer:
    return MailServer(f"smtp://127.0.0.1:{smtp.port}", sender=SENDER)


@pytest.fixture
def posting(deps: Deps, smtp: Controller, make_settings: Callable[..., IdentitySettings]) -> Deps:
    """The service with a mail server in its settings."""
    with deps.db.transaction() as tx:
        tx.execute(text("DELETE FROM mails"))
    settings = make_settings(smtp_url=f"smtp://127.0.0.1:{smtp.port}")
    return replace(deps, settings=settings, kept_key=KeptKey())


def waiting(deps: Deps) -> list[tuple[int, str]]:
    with deps.db.transaction() as tx:
        return [tuple(row) for row in tx.execute(text("SELECT attempts, last_error FROM mails"))]


def test_the_link_is_in_the_mail_only_and_leads_to_a_session(
    posting: Deps, server: MailServer, inbox: Inbox, new_email: Callable[[], str]
) -> None:
    made = invite_staff(posting, address := new_email())
    assert made.link == ""
    with posting.db.transaction() as tx:
        stored = tx.execute(text("SELECT CAST(mails.* AS text) FROM mails")).scalar_one()
    assert DESK_URL not in stored
    assert mailing.send_due_mail(posting, server)
    assert not mailing.send_due_mail(posting, server)
    assert waiting(posting) == []
    ((to, mail),) = inbox.mails
    assert (to, mail["To"], mail["From"]) == ([address], address, SENDER)
    content = mail.get_payload(decode=True).decode()
    assert "You are invited to the desk of Fiatgate by cli:eve@laptop" in content
    assert made.invitation.name not in content  # of what the inviter typed nothing is sent
    link = re.search(r"http://\S+", content)
    assert link is not None
    token = link[0].removeprefix(f"{DESK_URL}/invitation?token=")
    session = accepting.accept_invitation(posting, token=token, surface=Surface.DESK, client=BROWSER)
    assert authorize(posting, session).person.email == address


def test_a_link_is_sent_to_no_address_that_sql_wrote(
    posting: Deps, server: MailServer, inbox: Inbox, new_email: Callable[[], str]
) -> None:
    made, email = invite_staff(posting, new_email()), new_email()
    url = past_all_rules(posting.settings.database_url)
    with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
        cursor.execute("UPDATE invitations SET email = %s WHERE id = %s", (email, str(made.invitation.id)))
    while mailing.send_due_mail(posting, server):
        pass
    assert inbox.mails == []


def test_a_mail_that_no_key_opens_holds_up_no_other(
    posting: Deps, server: MailServer, inbox: Inbox, new_email: Callable[[], str]
) -> None:
    broken, mine = invite_staff(posting, new_email()), invite_staff(posting, new_email())
    with posting.db.transaction() as tx:
        spoil = text("UPDATE mails SET sealed_link = 'x' WHERE invitation_id = :id")
        tx.execute(spoil, {"id": broken.invitation.id})
    while mailing.send_due_mail(posting, server):
        pass
    assert [to for to, _ in inbox.mails] == [[mine.invitation.email]]


def test_the_link_of_another_invitation_is_not_sent(
    posting: Deps, server: MailServer, inbox: Inbox, new_email: Callable[[], str]
) -> None:
    theirs, mine = invite_staff(posting, new_email()), invite_staff(posting, new_email())
    with posting.db.transaction() as tx:
        swap = (
            "UPDATE mails SET sealed_link = (SELECT sealed_link FROM mails WHERE invitation_id = :theirs)"
            " WHERE invitation_id = :mine"
        )
        tx.execute(text(swap), {"theirs": theirs.invitation.id, "mine": mine.invitation.id})
    while mailing.send_due_mail(posting, server):
        pass
    assert [to for to, _ in inbox.mails] == [[theirs.invitation.email]]


def test_a_recovery_mail_says_so(
    posting: Deps, deps: Deps, server: MailServer, inbox: Inbox, new_email: Callable[[], str]
) -> None:
    bob = member(deps, new_email(), merchant_id := new_id())
    invitations.recover_person(posting, person_id=str(bob.person_id), merchant_id=str(merchant_id))
    assert mailing.send_due_mail(posting, server)
    ((_, mail),) = inbox.mails
    content = mail.get_payload(decode=True).decode()
    assert "a new way to sign in at the dashboard" in content
    assert "eve@laptop" not in content


def test_a_mail_that_is_refused_is_sent_again_after_growing_pauses(
    posting: Deps, server: MailServer, inbox: Inbox, clock: ManualClock, new_email: Callable[[], str]
) -> None:
    invite_staff(posting, new_email())
    inbox.answer = "451 try later"
    for pause in (30, 60, 120):
        assert mailing.send_due_mail(posting, server)
        clock.advance(seconds=pause - 1)
        assert not mailing.send_due_mail(posting, server)
        clock.advance(seconds=1)
    ((attempts, error),) = waiting(posting)
    assert attempts == 3
    assert "451" in error
    assert DESK_URL not in error
    with posting.db.transaction() as tx:  # SQL holds no mail back
        tx.execute(text("UPDATE mails SET attempts = 2147483647"))
    inbox.answer = ""
    assert mailing.send_due_mail(posting, server)
    assert len(inbox.mails) == 1


def test_a_mail_server_that_is_away_or_offers_no_tls_gets_nothing(smtp: Controller, inbox: Inbox) -> None:
    away = MailServer(f"smtp://127.0.0.1:{free_ports(1)[0]}", sender=SENDER)
    never_plain = MailServer(f"smtp://127.0.0.2:{smtp.port}", sender=SENDER)
    only_tls = MailServer(f"smtps://127.0.0.1:{smtp.port}", sender=SENDER)
    for server in (away, never_plain, only_tls):
        with pytest.raises(MailFailed):
            server.send(to="ann@example.com", subject="x", text="x")
    assert inbox.mails == []


def test_a_mail_is_not_sent_after_its_link_has_ended(
    posting: Deps, server: MailServer, inbox: Inbox, clock: ManualClock, new_email: Callable[[], str]
) -> None:
    withdrawn = invite_staff(posting, new_email())
    replaced = invite_staff(posting, new_email())
    newer = invite_staff(posting, replaced.invitation.email)
    invitations.withdraw_invitation(posting, invitation_id=str(withdrawn.invitation.id))
    assert len(waiting(posting)) == 1
    clock.set(newer.invitation.expires_at)
    assert mailing.send_due_mail(posting, server)
    assert waiting(posting) == []
    assert inbox.mails == []


def test_two_workers_send_a_mail_once_and_one_that_died_is_followed(
    posting: Deps, server: MailServer, inbox: Inbox, clock: ManualClock, new_email: Callable[[], str]
) -> None:
    invite_staff(posting, new_email())

    class Dies(MailServer):
        def send(self, *, to: str, subject: str, text: str) -> None:
            assert not mailing.send_due_mail(posting, server), "another worker meanwhile"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mailing.send_due_mail(posting, Dies("smtp://127.0.0.1:1", sender=SENDER))
    clock.advance(seconds=mailing.LEASE / timedelta(seconds=1))
    assert mailing.send_due_mail(posting, server)
    assert len(inbox.mails) == 1


@pytest.mark.parametrize("url", ["http://mail:25", "smtp://", "mail.example:25", "smtp://mail:25/path"])
def test_a_mail_server_is_named_by_a_url(make_settings: Callable[..., IdentitySettings], url: str) -> None:
    with pytest.raises(ValueError, match="expected smtp"):
        make_settings(smtp_url=url)


def test_an_address_that_no_library_can_read_stops_no_other_mail(server: MailServer, inbox: Inbox) -> None:
    """Such addresses are refused at the invitation; one that was stored before is put off like any failure."""
    for to in ("a@[", 'b@,"'):
        with pytest.raises(MailFailed):
            server.send(to=to, subject="x", text="x")
    assert inbox.mails == []


# -- notices of other services

TRON_ADDRESS = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"


def tell(deps: Deps, merchant_id: UUID, notice_id: UUID, **values: Any) -> None:
    given: dict[str, Any] = {
        "network": "TRC20",
        "address": TRON_ADDRESS,
        "added_by": "mallory@example.com",
        "usable_at": datetime(2027, 1, 31, 12, 30, tzinfo=UTC),
    }
    notices.tell_owners(deps, merchant_id=str(merchant_id), notice_id=str(notice_id), **(given | values))


def kept(deps: Deps) -> list[tuple[int, str]]:
    with deps.db.transaction() as tx:
        return [tuple(row) for row in tx.execute(text("SELECT attempts, last_error FROM notices"))]


@pytest.fixture
def telling(posting: Deps) -> Deps:
    with posting.db.transaction() as tx:
        tx.execute(text("DELETE FROM notices"))
    return posting


def test_the_active_owners_of_the_merchant_are_told_of_a_new_address_once(
    telling: Deps, deps: Deps, server: MailServer, inbox: Inbox, new_email: Callable[[], str]
) -> None:
    merchant_id, first, second, gone = new_id(), new_email(), new_email(), new_email()
    for address, roles in ((first, ["owner"]), (second, ["owner", "finance"]), (new_email(), ["finance"])):
        member(deps, address, merchant_id, *roles)
    disabled = member(deps, gone, merchant_id, "owner")
    with deps.db.transaction() as tx:
        tx.execute(text("UPDATE people SET disabled_at = now() WHERE id = :id"), {"id": disabled.person_id})
    member(deps, new_email(), new_id(), "owner")
    notice_id = new_id()
    for _ in range(2):  # its answer was lost
        tell(telling, merchant_id, notice_id)
    while notices.send_due_notice(telling, server):
        pass
    assert sorted(to for ((to,), _) in inbox.mails) == sorted([first, second])
    content = inbox.mails[0][1].get_payload(decode=True).decode()
    for each in (
        TRON_ADDRESS,
        "TRC20",
        "mallory@example.com",
        "Unless it was removed since, it can be used from 2027-01-31 12:30 UTC on",
        f"{DASHBOARD_URL}/addresses",
    ):
        assert each in content, each
    assert kept(telling) == []


def test_a_notice_waits_for_the_mail_server_for_three_days(
    telling: Deps,
    deps: Deps,
    server: MailServer,
    inbox: Inbox,
    clock: ManualClock,
    new_email: Callable[[], str],
) -> None:
    merchant_id = new_id()
    member(deps, new_email(), merchant_id, "owner")
    inbox.answer = "451 later"
    tell(telling, merchant_id, new_id())
    assert notices.send_due_notice(telling, server)
    assert not notices.send_due_notice(telling, server), "after a pause"
    ((attempts, error),) = kept(telling)
    assert attempts == 1
    assert "451" in error
    clock.advance(seconds=30)
    with telling.db.transaction() as tx:
        tx.execute(text("UPDATE notices SET attempts = 2147483647"))
    inbox.answer = ""
    assert notices.send_due_notice(telling, server)
    assert (len(inbox.mails), kept(telling)) == (1, [])
    tell(telling, merchant_id, new_id())
    clock.advance(days=3)
    assert notices.send_due_notice(telling, server)
    assert (len(inbox.mails), kept(telling)) == (1, []), "given up"


@pytest.mark.parametrize("changed", ["text", "person"])
def test_a_notice_that_sql_wrote_is_not_sent(
    telling: Deps, deps: Deps, server: MailServer, inbox: Inbox, new_email: Callable[[], str], changed: str
) -> None:
    merchant_id = new_id()
    member(deps, new_email(), merchant_id, "owner")
    other = member(deps, new_email(), new_id(), "owner")
    tell(telling, merchant_id, new_id())
    with telling.db.transaction() as tx:
        row = dict(tx.execute(text("DELETE FROM notices RETURNING *")).mappings().one())
        row |= (
            {"added_by": "Sign in at evil.example"} if changed == "text" else {"person_id": other.person_id}
        )
        values = ", ".join(f":{each}" for each in row)
        tx.execute(text(f"INSERT INTO notices ({', '.join(row)}) VALUES ({values})"), row)
    assert notices.send_due_notice(telling, server)
    assert (inbox.mails, kept(telling)) == ([], [])


def test_without_a_mail_server_no_notice_is_kept(
    telling: Deps, deps: Deps, new_email: Callable[[], str]
) -> None:
    merchant_id = new_id()
    member(deps, new_email(), merchant_id, "owner")
    tell(deps, merchant_id, new_id())
    assert kept(telling) == []


@pytest.mark.parametrize(
    ("field", "value"), [("usable_at", None), ("address", "a\nb"), ("network", ""), ("added_by", "x" * 255)]
)
def test_a_notice_of_another_form_is_refused(telling: Deps, field: str, value: object) -> None:
    with pytest.raises(Refused) as refused:
        tell(telling, new_id(), new_id(), **{field: value})
    assert (refused.value.reason, refused.value.metadata["field"]) == ("VALIDATION_ERROR", field)
