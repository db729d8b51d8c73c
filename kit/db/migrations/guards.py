"""Steps that keep a table's past: rows that stay, columns that keep their value, numbers that are numbers.

Each may be run again. Each locks its table, so a migration of a table that is in use runs each by itself
(`op.get_context().autocommit_block()`): no two steps can then wait for a transaction that waits for them.
"""

from collections.abc import Sequence

from alembic import op

_REFUSE = """
CREATE OR REPLACE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% of % is refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'insufficient_privilege';
END $$
"""


# For PostgreSQL NaN is greater than every number, Infinity included.
_BOUND_VALUES = """
DO $$
DECLARE
  bounded record;
BEGIN
  FOR bounded IN
    SELECT relname, string_agg(format(CASE typname
        WHEN 'numeric' THEN '%1$I > ''-Infinity'' AND %1$I < ''Infinity'''
        WHEN '_text' THEN 'coalesce(array_ndims(%1$I), 1) = 1 AND array_position(%1$I, NULL) IS NULL'
          || ' AND array_position(%1$I, '''') IS NULL AND array_to_string(%1$I, '''') NOT LIKE ''%%,%%'''
          || ' AND octet_length(array_to_string(%1$I, '','')) <= 65536'
        WHEN 'bytea' THEN 'octet_length(%1$I) <= '
          || CASE WHEN attname = 'content' THEN '8388608' ELSE '65536' END
        WHEN 'text' THEN 'octet_length(%1$I) <= '
          || CASE WHEN attname LIKE '%\\_data' THEN '65536' ELSE '16384' END
        WHEN 'jsonb' THEN 'NOT jsonb_path_exists(%1$I, ''$.**{9}'')'
          || ' AND NOT jsonb_path_exists(%1$I, ''$.** ? (@ > 1e15 || @ < -1e15)'')'
        ELSE '%1$I >= ''1970-01-01 00:00+00'' AND %1$I < ''3000-01-01 00:00+00''' END, attname), ' AND ' ORDER BY attnum
      ) AS condition
    FROM pg_class
    JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    JOIN pg_type ON pg_type.oid = atttypid AND typname IN ('numeric', 'timestamptz', 'date', 'text', '_text', 'bytea',
      'jsonb')
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
      AND NOT EXISTS (
        SELECT FROM pg_constraint WHERE conrelid = pg_class.oid AND conname = 'ck_' || relname || '_bounds')
    GROUP BY relname
  LOOP
    EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (%s)',
                   bounded.relname, 'ck_' || bounded.relname || '_bounds', bounded.condition);
  END LOOP;
END $$
"""


def make_refusal() -> None:
    """Creates the SQL function that the triggers of `append_only`, `stay`, `keep` and `set_once` call: run it first."""
    op.execute(_REFUSE)


def bound_values() -> None:
    """Refuses NaN, the infinities, times that Python can't read, texts above 16 KiB, lists, bytes and texts `…_data`
    above 64 KiB, pictures above 8 MiB, JSON nested more than 8 deep or with numbers beyond 1e15, and lists with
    lists, nothing or a comma in them, in each table that has no such constraint yet.
    """
    op.execute(_BOUND_VALUES)


def append_only(table: str) -> None:
    """Adds a trigger that refuses UPDATE, DELETE and TRUNCATE."""
    _refuse_statement(table, "are_append_only", "UPDATE OR DELETE OR TRUNCATE", "rows are only added")


def stay(table: str) -> None:
    """Adds a trigger that refuses DELETE and TRUNCATE; rows may be changed."""
    _refuse_statement(table, "stay", "DELETE OR TRUNCATE", "rows are never deleted")


def keep(table: str, columns: Sequence[str], *, ended: str | None = None, unless: str = "false") -> None:
    """Refuses to change these columns, `unless` a condition on OLD and NEW holds. Once `ended` is set, the row keeps
    all of its columns.
    """
    old, new = (", ".join(f"{row}.{each}" for each in columns) for row in ("OLD", "NEW"))
    _refuse_row(
        table,
        "keep_their_terms",
        f"({old}) IS DISTINCT FROM ({new}) AND NOT ({unless})",
        f"{', '.join(columns)} keep their value",
    )
    if ended is not None:
        condition = f"OLD.{ended} IS NOT NULL AND OLD.* IS DISTINCT FROM NEW.*"
        _refuse_row(table, "end_for_good", condition, "it has ended, and that is final")


def set_once(table: str, columns: Sequence[str]) -> None:
    """Refuses to change each of these columns once it has a value."""
    conditions = (f"OLD.{each} IS NOT NULL AND OLD.{each} IS DISTINCT FROM NEW.{each}" for each in columns)
    _refuse_row(table, "are_set_once", " OR ".join(conditions), f"{', '.join(columns)} are set once")


def _refuse_statement(table: str, name: str, events: str, why: str) -> None:
    op.execute(
        f"CREATE OR REPLACE TRIGGER {table}_{name} BEFORE {events} ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting('{why}')"
    )


def _refuse_row(table: str, name: str, condition: str, why: str) -> None:
    op.execute(
        f"CREATE OR REPLACE TRIGGER {table}_{name} BEFORE UPDATE ON {table}"
        f" FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION refuse_rewriting('{why}')"
    )
