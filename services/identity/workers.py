"""Background work: e-mails, new signing keys, the deletion of rows that are over."""

from collections.abc import Sequence

from kit.rpc import approvals
from kit.rpc.status import Gauge
from kit.work.worker import Loop, Worker
from services.identity.clients import MailServer
from services.identity.domain.people import Surface
from services.identity.operations import keys, mailing, notices, pruning, sessions
from services.identity.store import mails
from services.identity.store import notices as stored_notices
from services.identity.store import sessions as stored_sessions
from services.identity.wiring import Deps

MAILS_SECONDS = 2.0
KEYS_SECONDS = 300.0
RETENTION_SECONDS = 60.0


def mail_sender(deps: Deps) -> Loop:
    server = MailServer(deps.settings.smtp_url, sender=deps.settings.smtp_from)
    return Loop(
        "mails",
        lambda: mailing.send_due_mail(deps, server),
        every_seconds=MAILS_SECONDS,
        clock=deps.clock,
    )


def notice_sender(deps: Deps) -> Loop:
    server = MailServer(deps.settings.smtp_url, sender=deps.settings.smtp_from)
    return Loop(
        "notices",
        lambda: notices.send_due_notice(deps, server),
        every_seconds=MAILS_SECONDS,
        clock=deps.clock,
    )


def key_rotation(deps: Deps) -> Loop:
    return Loop(
        "actor-key-rotation", lambda: keys.replace_old_key(deps), every_seconds=KEYS_SECONDS, clock=deps.clock
    )


def retention(deps: Deps) -> Loop:
    return Loop("retention", lambda: pruning.prune(deps), every_seconds=RETENTION_SECONDS, clock=deps.clock)


def workers(deps: Deps) -> Sequence[Worker]:
    loops: list[Worker] = [key_rotation(deps), retention(deps)]
    if deps.settings.smtp_url:
        loops += [mail_sender(deps), notice_sender(deps)]
    return loops


def gauges(deps: Deps) -> Sequence[Gauge]:
    """Returns the numbers that `fiatgate status` shows of people."""
    with deps.db.transaction() as tx:
        live = stored_sessions.live_count(tx, sessions.live(deps))
        waiting, since = mails.waiting_mails(tx)
        waiting_notices, since_notices = stored_notices.waiting(tx)
    oldest = min((each for each in (since, since_notices) if each is not None), default=deps.clock.now())
    oldest_seconds = (deps.clock.now() - oldest).total_seconds()
    return [
        Gauge("sessions_desk", live.get(Surface.DESK.value, 0), "Live sessions of operators"),
        Gauge(
            "sessions_dashboard", live.get(Surface.DASHBOARD.value, 0), "Live sessions of merchants' members"
        ),
        Gauge("mails_waiting", waiting + waiting_notices, "E-mails that are still to be sent"),
        Gauge("oldest_mail_seconds", oldest_seconds, "Age of the oldest e-mail that is still to be sent"),
        *approvals.gauges(deps),
    ]
