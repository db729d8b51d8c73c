"""Files of banks: kept by the call, read by a worker. A file is taken whole or refused whole."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sqlalchemy import exc
from sqlalchemy.orm import Session

from fiatgate.bank.v1 import bank_pb2 as pb
from kit.audit import acts
from kit.base.account_forms import account_key
from kit.base.ids import new_id
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.observe.log import get_logger
from kit.rpc import values
from services.bank import errors
from services.bank.domain import lines as of_files
from services.bank.domain.lines import Statement
from services.bank.domain.proposals import ImportState, first_state
from services.bank.files.csv_files import profile_from_json
from services.bank.files.reading import Format, detect, read
from services.bank.files.values import FILE_MOST_BYTES, FileRefused
from services.bank.store import imports, lines
from services.bank.store.decisions import is_as_kept, seal_of_file, seal_of_line
from services.bank.store.views import ImportView, LineView, StatementView
from services.bank.wiring import Deps

NAME_MAX_CHARACTERS: Final = most_of(pb.ImportFileRequest, "file_name")
PROFILE_MAX_CHARACTERS: Final = most_of(pb.ImportFileRequest, "profile")
PROBLEM_MAX_CHARACTERS: Final = 500
REFERENCES_MAX_CHARACTERS: Final = 4000
_log = get_logger()


@dataclass(frozen=True, kw_only=True)
class ImportStory:
    """An import with its statements."""

    file: ImportView
    statements: Sequence[StatementView]


@retry_conflicts
def import_file(deps: Deps, *, content: bytes, file_name: str, profile: str) -> ImportStory:
    """Keeps the file for the worker; returns the earlier import when the same bytes came before.

    Raises BANK_FILE_REFUSED, VALIDATION_ERROR.
    """
    if not 0 < len(content) <= FILE_MOST_BYTES:
        raise errors.file_refused(f"A file has 1 byte to {FILE_MOST_BYTES // 1024**2} MiB")
    name = values.label("file_name", file_name.strip(), most=NAME_MAX_CHARACTERS)
    if profile:
        values.text("profile", profile, most=PROFILE_MAX_CHARACTERS)
        values.parsed("profile", profile, profile_from_json)
    digest = hashlib.sha256(content).digest()
    new = {
        "id": new_id(),
        "digest": digest,
        "file_name": name,
        "profile": profile,
        "content": content,
        "state": ImportState.WAITING,
        "lines": 0,
        "new_lines": 0,
        "imported_at": deps.clock.now(),
        "seal": seal_of_file(deps.settings.seals, digest, profile),
    }
    with deps.db.transaction() as tx:
        kept = imports.add_if_new(tx, new)
        if kept.id == new["id"]:
            after = {"file_name": name, "digest": digest.hex(), "profile": profile}
            acts.record(tx, "bank-file.import", f"bank-file:{kept.id}", after=after)
        statements = imports.statements_of(tx, [kept.id])[kept.id]
    deps.arrived.set()
    return ImportStory(file=kept, statements=statements)


def get_import(deps: Deps, *, import_id: str) -> ImportStory:
    """Raises BANK_IMPORT_NOT_FOUND."""
    id = values.uuid_or(errors.import_not_found, import_id)
    with deps.db.transaction() as tx:
        found = imports.by_id(tx, id)
        if found is None:
            raise errors.import_not_found()
        return ImportStory(file=found, statements=imports.statements_of(tx, [id])[id])


def list_imports(deps: Deps, *, limit: int, after_import_id: str = "") -> Sequence[ImportStory]:
    """Returns imports with their statements, newest first."""
    after = values.uuid("after_import_id", after_import_id) if after_import_id else None
    with deps.db.transaction() as tx:
        found = imports.newest(tx, values.rows(limit), after=after)
        statements = imports.statements_of(tx, [each.id for each in found])
    return [ImportStory(file=each, statements=statements[each.id]) for each in found]


# -- the worker


def read_next(deps: Deps) -> bool:
    """Reads the oldest file that waits and stores it whole, or refuses it. Returns whether there was one."""
    with deps.db.autocommit() as connection:
        found = imports.next_waiting(connection)
    if found is None:
        return False
    file, content, seal = found
    try:
        format, statements = _parsed(deps, file, content, seal)
        _store(deps, file, format, statements)
    except FileRefused as refused:
        with deps.db.transaction() as tx:
            if imports.locked_if_waiting(tx, file.id):
                imports.end(
                    tx, file.id, state=ImportState.REFUSED, problem=str(refused)[:PROBLEM_MAX_CHARACTERS]
                )
    return True


def _parsed(deps: Deps, file: ImportView, content: bytes, seal: bytes) -> tuple[Format, Sequence[Statement]]:
    if not is_as_kept(deps.settings.seals, hashlib.sha256(content).digest(), file.profile, seal):
        raise FileRefused("The file was changed in the database, past the service.")
    try:
        profile = profile_from_json(file.profile) if file.profile else None
        format = Format.CSV if profile else detect(content)
        return format, read(content, format=format, profile=profile)
    except FileRefused:
        raise
    except Exception:  # noqa: BLE001 - a fault of a reader must not hold up the files behind this one
        _log.exception("bank_file_failed", import_id=str(file.id))
        raise FileRefused("The file can't be read. The log of bank says why.") from None


def _store(deps: Deps, file: ImportView, format: Format, statements: Sequence[Statement]) -> None:
    """Stores the lines, in one transaction. Raises FileRefused for a value that the tables refuse."""
    try:
        with deps.db.transaction() as tx:
            if not imports.locked_if_waiting(tx, file.id):
                return
            taken, new = _taken(deps, tx, file, statements)
            imports.end(tx, file.id, state=ImportState.TAKEN, format=format, lines=taken, new_lines=new)
    except (exc.IntegrityError, exc.DataError):
        _log.exception("bank_file_failed", import_id=str(file.id))
        raise FileRefused("The file has a value that can't be stored. The log of bank says which.") from None
    _log.info("bank_file_taken", import_id=str(file.id), lines=taken, new_lines=new)


def _taken(deps: Deps, tx: Session, file: ImportView, statements: Sequence[Statement]) -> tuple[int, int]:
    """Stores the statements and their lines; returns the numbers of lines and of new ones."""
    now = deps.clock.now()
    every = [line for statement in statements for line in statement.lines]
    identities = iter(of_files.identities(every, source="file", promised=False))
    rows = []
    for statement in statements:
        view = _statement(file, statement)
        imports.add_statements(tx, [view])
        rows += [_line(deps, view, line, identity=next(identities), now=now) for line in statement.lines]
    return len(rows), lines.add_new(tx, rows)


def _statement(file: ImportView, statement: Statement) -> StatementView:
    return StatementView(
        id=new_id(),
        import_id=file.id,
        account=account_key(statement.account),
        currency_code=statement.currency,
        number=statement.number,
        opening=statement.opening,
        closing=statement.closing,
        opened_on=statement.opened_on,
        closed_on=statement.closed_on,
    )


def _line(deps: Deps, of: StatementView, line: of_files.Line, *, identity: str, now: datetime) -> LineView:
    day = line.booked_on or line.valued_on or now.date()
    view = LineView(
        id=of_files.line_id(of.account, identity, day),
        import_id=of.import_id,
        statement_id=of.id,
        connector_id=None,
        account=of.account,
        identity=identity,
        direction=line.direction,
        amount=line.amount,
        currency_code=line.currency,
        status=line.status,
        booked_on=line.booked_on,
        valued_on=line.valued_on,
        counterparty_name=line.counterparty_name,
        counterparty_account=line.counterparty_account,
        text=line.text,
        reference_texts="\n".join(line.references)[:REFERENCES_MAX_CHARACTERS],
        created_at=now,
        state=first_state(line.direction, line.status),
        tier=None,
        deal_id=None,
        invoice_id=None,
        deal_amount=None,
        reason=None,
        seal=b"",
    )
    return replace(view, seal=seal_of_line(deps.settings.seals, view))
