"""The values of this service that acts decide, and the seals of files, statements and lines."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy.orm import Session

from kit.audit.acts import text_of
from kit.audit.decisions import Decided
from kit.base.seals import Seals, canonical
from services.bank.store.views import LineView, StatementView

CONNECTOR: Final = Decided(
    "bank-connector",
    ("bank-connector.create", "bank-connector.revoke"),
    ("name", "hint", "key_sha256", "accounts", "silence_seconds", "revoked_at"),
)
CSV_PROFILE: Final = Decided(
    "csv-profile", ("csv-profile.save", "csv-profile.delete"), ("profile", "actor", "changed_at")
)
LINE: Final = Decided(
    "bank-line",
    ("bank-line.ignore", "bank-line.restore", "bank-line.reverse", "bank-line.use"),
    ("reason", "used_for"),
)
REFUNDED: Final = Decided("bank-line", ("bank-line.link",), ("refund_id",))
_FILE: Final = "a bank file"
_LINE: Final = "a bank line"
_STATEMENT: Final = "a bank statement"
_SEALED: Final = (
    *("account", "identity", "direction", "amount", "currency_code", "status", "booked_on"),
    *("counterparty_name", "counterparty_account", "text", "reference_texts"),
)

_OF_STATEMENTS: Final = (
    *("import_id", "account", "currency_code", "number", "opening", "closing", "opened_on", "closed_on"),
)


def seal_of_line(seals: Seals, line: LineView) -> bytes:
    """Returns the seal of what the bank says of a line."""
    return seals.seal(_LINE, _content(line, _SEALED))


def is_as_read(seals: Seals, line: LineView) -> bool:
    """Returns whether a process of the service read the line so."""
    return seals.is_right(_LINE, _content(line, _SEALED), bytes(line.seal))


def is_put_back(tx: Session, line: LineView) -> bool:
    """Returns whether acts ignored or used the line, or the bank took it back, and its values are others: the values of
    before with their seal, which SQL wrote.
    """
    due = LINE.values(tx, [line.id]).get(str(line.id), {})
    return any(text_of(getattr(line, name)) not in values for name, values in due.items())


def seal_of_statement(seals: Seals, statement: StatementView) -> bytes:
    return seals.seal(_STATEMENT, _content(statement, _OF_STATEMENTS))


def is_statement_as_read(seals: Seals, statement: StatementView) -> bool:
    """Returns whether a process of the service read these balances and days."""
    return seals.is_right(_STATEMENT, _content(statement, _OF_STATEMENTS), bytes(statement.seal))


def _content(row: LineView | StatementView, names: Sequence[str]) -> bytes:
    return canonical([getattr(row, name) for name in names])


def seal_of_file(seals: Seals, digest: bytes, profile: str) -> bytes:
    return seals.seal(_FILE, canonical([digest, profile]))


def is_as_kept(seals: Seals, digest: bytes, profile: str, seal: bytes) -> bool:
    """Returns whether a process of the service kept the file with these bytes."""
    return seals.is_right(_FILE, canonical([digest, profile]), seal)
