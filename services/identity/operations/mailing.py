"""E-mails with links of invitations: sent one after the other, again after growing pauses until the link expires."""

from datetime import timedelta
from typing import Final

from kit.base.vault import MasterKeyMissing
from kit.observe import metrics
from kit.observe.log import get_logger
from services.identity.clients import MailFailed, MailServer
from services.identity.credentials import tokens
from services.identity.domain.people import Invitation, Surface, mail_due_after
from services.identity.operations.invitations import was_made_by_call
from services.identity.operations.reach import inviter_of
from services.identity.store import mails
from services.identity.store.mails import DueMail
from services.identity.wiring import Deps

LEASE: Final = timedelta(minutes=2)
"""Longer than one attempt takes: meanwhile no other process sends the mail."""

ERROR_CHARACTERS: Final = 1000
"""The most of a mail server's error that a row holds."""

SENT: Final = metrics.counter("mails_sent", "E-mails that the mail server took")
FAILED: Final = metrics.counter(
    "mails_failed", "Attempts that the mail server did not take; they are made again"
)

_log = get_logger()

_PLACES: Final = {Surface.DESK: "the desk", Surface.DASHBOARD: "the dashboard"}


def send_due_mail(deps: Deps, server: MailServer) -> bool:
    """Sends the mail that is due for longest; returns whether there was one."""
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        mail = mails.take_due_mail(tx, now=now, lease=LEASE)
    if mail is None:
        return False
    invitation = mail.invitation
    if invitation.expires_at <= now:
        _remove(deps, mail)
        _log.warning("mail_expired", invitation_id=str(invitation.id), attempts=mail.attempts - 1)
        return True
    try:
        link = _link(deps, mail)
    except MasterKeyMissing:
        _put_off(deps, mail, "no master key opens its link")
        return True
    if link is None:
        _remove(deps, mail)
        _log.error("mail_discarded", invitation_id=str(invitation.id))
        return True
    try:
        server.send(to=invitation.email, subject="Your invitation to Fiatgate", text=_text(invitation, link))
    except MailFailed as error:
        _put_off(deps, mail, str(error)[:ERROR_CHARACTERS])
        return True
    _remove(deps, mail)
    SENT.inc()
    _log.info("mail_sent", invitation_id=str(invitation.id), attempts=mail.attempts)
    return True


def _put_off(deps: Deps, mail: DueMail, error: str) -> None:
    FAILED.inc()
    due_at = deps.clock.now() + mail_due_after(mail.attempts)
    with deps.db.transaction() as tx:
        mails.put_off_mail(tx, mail.invitation.id, due_at=due_at, error=error)
    _log.warning("mail_failed", invitation_id=str(mail.invitation.id), error=error)


def _remove(deps: Deps, mail: DueMail) -> None:
    """Removes the mail and with it the only copy of its link."""
    with deps.db.transaction() as tx:
        mails.remove_mail(tx, mail.invitation.id)


def _link(deps: Deps, mail: DueMail) -> str | None:
    """Returns the link of the mail's invitation; None when SQL put it there: it is that of another one, or no call made
    it for this address. Raises MasterKeyMissing.
    """
    of, _, link = deps.vault.open(mail.sealed_link).decode().partition(" ")
    if of != f"link:{mail.invitation.id}":
        return None
    with deps.db.transaction() as tx:
        return link if was_made_by_call(tx, mail.invitation, link.rpartition("=")[2]) else None


def _text(invitation: Invitation, link: str) -> str:
    """Returns the text, which has nothing that the inviter typed: an owner could send any sentence to any address."""
    place = _PLACES[invitation.surface]
    reason = (
        f"You asked for a new way to sign in at {place} of Fiatgate, and have this link from {inviter_of(invitation)}."
        if tokens.is_for_recovery(link.rpartition("=")[2])
        else f"You are invited to {place} of Fiatgate by {inviter_of(invitation)}."
    )
    return (
        f"Hello,\n\n{reason} Open the link to go on.\n"
        f"It works once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC:\n\n"
        f"{link}\n\n"
        "If you did not expect this, ignore it: without the link nothing happens.\n"
    )
