"""Invariants of lines (kit.db.books), computed apart from the code that writes them."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy.orm import Session

from kit.audit.decisions import follow_acts
from kit.db.books import Difference, Part
from kit.db.database import seals_of
from kit.db.described import schema_part
from services.bank.store.decisions import (
    CONNECTOR,
    CSV_PROFILE,
    LINE,
    REFUNDED,
    is_as_read,
    is_statement_as_read,
)
from services.bank.store.imports import statements_between
from services.bank.store.lines import between

_PAID = """
SELECT lines.id, 'paid' AS field, paid.amount::text AS found,
       CASE state WHEN 'matched' THEN lines.amount::text ELSE 'less than ' || lines.amount END AS due
FROM lines CROSS JOIN LATERAL (
  SELECT coalesce(sum(amount), 0) AS amount FROM line_matches WHERE line_id = lines.id
) AS paid
WHERE lines.id > CAST(:first AS uuid) AND lines.id <= CAST(:last AS uuid)
  AND (paid.amount > lines.amount
    OR lines.status <> 'reversed' AND (lines.state = 'matched') <> (paid.amount = lines.amount))
"""


def _lines_are_sealed(tx: Session, first: str, last: str) -> Iterator[Difference]:
    seals = seals_of(tx)
    lines = between(tx, first, last)
    decided = LINE.values(tx, [line.id for line in lines])
    for line in lines:
        if not is_as_read(seals, line):
            yield line.id, "seal", "not that of its values", "as the service read the line"
        due = decided.get(str(line.id), {}).get("status", (line.status,))
        if line.status not in due:
            yield line.id, "status", line.status, f"{due[0]}, by the last act about it"


def _statements_are_sealed(tx: Session, first: str, last: str) -> Iterator[Difference]:
    seals = seals_of(tx)
    for statement in statements_between(tx, first, last):
        if not is_statement_as_read(seals, statement):
            yield statement.id, "seal", "not that of its values", "as the service read the statement"


PARTS: Final = (
    schema_part("bank"),
    Part(
        name="bank statements",
        one="bank statement",
        table="statements",
        follows=(_statements_are_sealed,),
    ),
    Part(
        name="bank lines",
        one="bank line",
        table="lines",
        follows=(
            _PAID,
            _lines_are_sealed,
            follow_acts(LINE, table="lines"),
            follow_acts(REFUNDED, table="lines"),
        ),
    ),
    Part(
        name="bank connectors",
        one="bank connector",
        table="connectors",
        follows=(
            follow_acts(
                CONNECTOR,
                table="connectors",
                made_by=("bank-connector.create",),
                key_sha256="encode(sha256(key_hash), 'hex')",
            ),
        ),
    ),
    Part(
        name="profiles of CSV files",
        one="profile of CSV files",
        table="csv_profiles",
        key="name",
        key_type="text",
        follows=(
            follow_acts(
                CSV_PROFILE, table="csv_profiles", id="name", key_type="text", made_by=CSV_PROFILE.acts
            ),
        ),
    ),
)
