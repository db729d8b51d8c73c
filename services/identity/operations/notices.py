"""E-mails to a merchant's owners about a new address of its book: again after growing pauses, for three days."""

from datetime import datetime, timedelta
from typing import Final

from kit.observe.log import get_logger
from kit.rpc import values
from services.identity.clients import MailFailed, MailServer
from services.identity.domain.people import mail_due_after
from services.identity.operations.mailing import ERROR_CHARACTERS, FAILED, LEASE, SENT
from services.identity.store import notices
from services.identity.store.notices import DueNotice, NewAddress
from services.identity.wiring import Deps

GIVEN_UP_AFTER: Final = timedelta(days=3)
ADDRESS_MAX_CHARACTERS: Final = 128
NETWORK_MAX_CHARACTERS: Final = 32
AUTHOR_MAX_CHARACTERS: Final = 254
SUBJECT: Final = "A new address for withdrawals"

_log = get_logger()


def tell_owners(
    deps: Deps,
    *,
    notice_id: str,
    merchant_id: str,
    network: str,
    address: str,
    added_by: str,
    usable_at: datetime | None,
) -> None:
    """Queues an e-mail to each active owner of the merchant; without a mail server it does nothing.

    Raises VALIDATION_ERROR.
    """
    if usable_at is None:
        raise values.invalid("usable_at", "Expected a time")
    new = NewAddress(
        id=values.uuid("notice_id", notice_id),
        merchant_id=values.uuid("merchant_id", merchant_id),
        network=values.label("network", network, most=NETWORK_MAX_CHARACTERS),
        address=values.label("address", address, most=ADDRESS_MAX_CHARACTERS),
        added_by=values.label("added_by", added_by, most=AUTHOR_MAX_CHARACTERS),
        usable_at=usable_at,
    )
    if not deps.settings.smtp_url:
        return
    with deps.db.transaction() as tx:
        notices.add(tx, new, at=deps.clock.now())


def send_due_notice(deps: Deps, server: MailServer) -> bool:
    """Sends the notice that is due for longest; returns whether there was one."""
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        notice = notices.take_due(tx, now=now, lease=LEASE)
        if notice is None:
            return False
        is_own = notices.is_own(tx, notice)
    if not is_own:
        _remove(deps, notice)
        _log.error("mail_discarded", notice_id=str(notice.id))
        return True
    if notice.created_at + GIVEN_UP_AFTER <= now:
        _remove(deps, notice)
        _log.warning("notice_expired", notice_id=str(notice.id), attempts=notice.attempts - 1)
        return True
    try:
        server.send(to=notice.email, subject=SUBJECT, text=_text(deps, notice))
    except MailFailed as error:
        FAILED.inc()
        due_at = deps.clock.now() + mail_due_after(notice.attempts)
        with deps.db.transaction() as tx:
            notices.put_off(tx, notice, due_at=due_at, error=str(error)[:ERROR_CHARACTERS])
        _log.warning("notice_failed", notice_id=str(notice.id), error=str(error))
        return True
    _remove(deps, notice)
    SENT.inc()
    _log.info("notice_sent", notice_id=str(notice.id), attempts=notice.attempts)
    return True


def _remove(deps: Deps, notice: DueNotice) -> None:
    with deps.db.transaction() as tx:
        notices.remove(tx, notice)


def _text(deps: Deps, notice: DueNotice) -> str:
    """Returns the text. It has no name or memo: the author chose those, and could send any sentence. The address may be
    removed by now: a mail waits for identity and for the mail server.
    """
    return (
        f"Hello,\n\n{notice.added_by} added an address for withdrawals of your merchant {notice.merchant_id}:\n\n"
        f"{notice.address} ({notice.network})\n\n"
        f"Unless it was removed since, it can be used from {notice.usable_at:%Y-%m-%d %H:%M} UTC on. "
        "If it is not yours and still in the address book, remove it before:\n\n"
        f"{deps.settings.dashboard_url}/addresses\n\n"
        "You get this because you are an owner of the merchant.\n"
    )
