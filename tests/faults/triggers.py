"""Rows that PostgreSQL refuses once, as a full disk or a dying server would, in the middle of an operation."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg2
from psycopg2 import sql

# Sequences count outside of transactions: the refusal is remembered though the transaction that met it is rolled back.
_FUNCTION: LiteralString = """
CREATE OR REPLACE FUNCTION refuse_once() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF nextval(TG_ARGV[0]::regclass) = 0 THEN
    RAISE EXCEPTION 'refused once: % of %', TG_OP, TG_TABLE_NAME;
  END IF;
  RETURN NEW;
END $$
"""


def install(url: str, table: str, operation: str) -> None:
    """Make the trigger of one table of the database behind `url` (a superuser's), at rest."""
    names = {
        "sequence": sql.Identifier(_sequence(table, operation)),
        "trigger": sql.Identifier(f"refuse_once_{operation.lower()}"),
        "table": sql.Identifier(table),
        "operation": sql.SQL("INSERT" if operation == "INSERT" else "UPDATE"),
        "argument": sql.Literal(f"public.{_sequence(table, operation)}"),
    }
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(_FUNCTION)
        cursor.execute(
            sql.SQL("CREATE SEQUENCE IF NOT EXISTS {sequence} MINVALUE -1 START 1").format(**names)
        )
        cursor.execute(
            sql.SQL(
                "CREATE OR REPLACE TRIGGER {trigger} BEFORE {operation} ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION refuse_once({argument})"
            ).format(**names)
        )
    connection.close()


def arm(url: str, table: str, operation: str) -> None:
    """Let the next row be refused."""
    _ask(url, "SELECT setval(%s::regclass, -1, true)", (f"public.{_sequence(table, operation)}",))


def _sequence(table: str, operation: str) -> str:
    return f"refusals_{table}_{operation.lower()}"


def _ask(url: str, statement: str, values: tuple[Any, ...]) -> None:
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(statement, values)
    connection.close()
