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
from services.bank.files.csv_files import (
    DELIMITERS,
    ENCODINGS,
    first_rows,
    guessed_form,
    profile_from_json,
)
from services.bank.files.reading import NO_PROFILE, Format, detect, read
from services.bank.files.values import FILE_MOST_BYTES, FileRefused
from services.bank.operations import profiles
from services.bank.store import imports, lines
from services.bank.store.decisions import is_as_kept, seal_of_file, seal_of_line, seal_of_statement
from services.bank.store.views import ImportView, LineView, StatementView
from services.bank.wiring import Deps

NAME_MAX_CHARACTERS: Final = most_of(pb.ImportFileRequest, "file_name")
PROBLEM_MAX_CHARACTERS: Final = 500
REFERENCES_MAX_CHARACTERS: Final = 4000
ROWS_SHOWN: Final = 15
CELLS_SHOWN: Final = 40
CELL_SHOWN: Final = 80
"""Characters."""
ROWS_READ: Final = 10
NO_LINES: Final = "None of the first rows gives a line."
CHANGED: Final = "The file was changed in the database, past the service."
TAKEN_OTHERWISE: Final = "The same file was taken by another profile: its lines would be there twice."
_log = get_logger()


@dataclass(frozen=True, kw_only=True)
class ImportStory:
    """An import with its statements."""

    file: ImportView
    statements: Sequence[StatementView]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The first rows of a CSV file by this form, and their lines; or why they can't be read."""

    encoding: str
    delimiter: str
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[LineView] = ()
    problem: str = ""


@retry_conflicts
def import_file(
    deps: Deps,
    *,
    content: bytes,
    file_name: str,
    profile: str = "",
    profile_name: str = "",
    import_id: str = "",
) -> ImportStory:
    """Keeps the file for the worker; returns the earlier import when the same bytes came before. A CSV file without a
    profile is refused at once.

    Raises BANK_FILE_REFUSED, BANK_IMPORT_NOT_FOUND, NOT_DECIDED, VALIDATION_ERROR.
    """
    if import_id:
        file_name, content = _kept(deps, import_id)
    if not 0 < len(content) <= FILE_MOST_BYTES:
        raise errors.file_refused(f"A file has 1 byte to {FILE_MOST_BYTES // 1024**2} MiB")
    name = values.label("file_name", file_name.strip(), most=NAME_MAX_CHARACTERS)
    profile = profiles.given(deps, profile, profile_name)
    lacks_profile = not profile and _is_csv(content)
    digest = hashlib.sha256(content).digest()
    new = {
        "id": new_id(),
        "digest": digest,
        "file_name": name,
        "profile": profile,
        "content": content,
        "state": ImportState.REFUSED if lacks_profile else ImportState.WAITING,
        "format": Format.CSV if profile or lacks_profile else None,
        "problem": NO_PROFILE if lacks_profile else None,
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


def get_preview(
    deps: Deps, *, import_id: str, encoding: str, delimiter: str, profile: str, profile_name: str
) -> Preview:
    """Reads the first rows of a CSV file, and their lines if there is a profile. Raises as import_file."""
    for field, value, known in (("encoding", encoding, ENCODINGS), ("delimiter", delimiter, DELIMITERS)):
        if value and value not in known:
            raise values.invalid(field, f"Expected one of {', '.join(map(repr, known))}")
    form = profiles.given(deps, profile, profile_name)
    name, content = _kept(deps, import_id)
    guessed = guessed_form(content)
    found = Preview(encoding=encoding or guessed[0], delimiter=delimiter or guessed[1])
    try:
        rows = first_rows(content, found.encoding, found.delimiter, most=ROWS_SHOWN)
        found = replace(found, rows=[[each[:CELL_SHOWN] for each in row[:CELLS_SHOWN]] for row in rows])
        if form:
            parsed = profile_from_json(form)
            statements = read(content, format=Format.CSV, profile=parsed, most_rows=ROWS_READ)
            file = ImportView(new_id(), name, form, ImportState.WAITING, None, None, 0, 0, deps.clock.now())
            views = _views(deps, file, statements)[1]
            found = replace(found, lines=views, problem="" if views else NO_LINES)
    except FileRefused as refused:
        return replace(found, problem=str(refused)[:PROBLEM_MAX_CHARACTERS])
    return found


def _kept(deps: Deps, import_id: str) -> tuple[str, bytes]:
    """Returns name and content of a file that was imported."""
    id = values.uuid_or(errors.import_not_found, import_id)
    with deps.db.autocommit() as connection:
        found = imports.kept(connection, id)
    if found is None:
        raise errors.import_not_found()
    file, content, seal = found
    if not _is_as_kept(deps, file, content, seal):
        raise errors.file_refused(CHANGED)
    return file.file_name, content


def _is_csv(content: bytes) -> bool:
    try:
        return detect(content) is Format.CSV
    except FileRefused:
        return False


def _is_as_kept(deps: Deps, file: ImportView, content: bytes, seal: bytes) -> bool:
    return is_as_kept(deps.settings.seals, hashlib.sha256(content).digest(), file.profile, seal)


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
    if not _is_as_kept(deps, file, content, seal):
        raise FileRefused(CHANGED)
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
            if imports.is_taken_otherwise(tx, file):
                raise FileRefused(TAKEN_OTHERWISE)
            taken, new = _taken(deps, tx, file, statements)
            imports.end(tx, file.id, state=ImportState.TAKEN, format=format, lines=taken, new_lines=new)
    except (exc.IntegrityError, exc.DataError):
        _log.exception("bank_file_failed", import_id=str(file.id))
        raise FileRefused("The file has a value that can't be stored. The log of bank says which.") from None
    _log.info("bank_file_taken", import_id=str(file.id), lines=taken, new_lines=new)


def _taken(deps: Deps, tx: Session, file: ImportView, statements: Sequence[Statement]) -> tuple[int, int]:
    """Stores the statements and their lines; returns the numbers of lines and of new ones."""
    stored, rows = _views(deps, file, statements)
    imports.add_statements(tx, stored)
    return len(rows), lines.add_new(tx, rows)


def _views(
    deps: Deps, file: ImportView, statements: Sequence[Statement]
) -> tuple[Sequence[StatementView], Sequence[LineView]]:
    now = deps.clock.now()
    every = [line for statement in statements for line in statement.lines]
    identities = iter(of_files.identities(every))
    views = [_statement(deps, file, statement) for statement in statements]
    rows = [
        _line(deps, view, line, identity=next(identities), now=now)
        for view, statement in zip(views, statements, strict=True)
        for line in statement.lines
    ]
    return views, rows


def _statement(deps: Deps, file: ImportView, statement: Statement) -> StatementView:
    view = StatementView(
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
    return replace(view, seal=seal_of_statement(deps.settings.seals, view))


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
