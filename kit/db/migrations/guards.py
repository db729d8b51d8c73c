"""Steps that keep a table's past: rows that stay, columns that keep their value, and a record of every change.

Each step may be run again, and each locks one table only, so that no two steps can wait for a transaction that waits
for them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from alembic import op

# The database makes the record in the transaction that changes the row: no process can omit it, and the service's role
# has no right to write one. `number` counts the records of one subject, so that a missing one is visible.
_RECORDS = """
CREATE TABLE IF NOT EXISTS records (
  kind text NOT NULL,
  subject text NOT NULL,
  number integer NOT NULL,
  at timestamp with time zone NOT NULL,
  facts jsonb NOT NULL,
  CONSTRAINT pk_records PRIMARY KEY (kind, subject, number)
)
"""

# The first record holds the whole row, each later one the columns that changed; a row with `made_as` has only the later
# ones. The time zone is fixed, or the same moment would be written differently. Sequential scans are off, because a
# session whose plan was made while the table was empty would later read all of it.
_RECORD_CHANGE = """
CREATE OR REPLACE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public SET timezone = 'UTC' SET enable_seqscan = off AS $$
DECLARE
  -- The arguments: kind, the column that names the subject, then the columns that are not recorded.
  of_kind CONSTANT text := TG_ARGV[0];
  now_facts jsonb := to_jsonb(NEW);
  of_subject CONSTANT text := now_facts ->> TG_ARGV[1];
  old_facts jsonb;
  last integer;
BEGIN
  now_facts := now_facts - 'made_as' - TG_ARGV[2:];
  IF TG_OP = 'UPDATE' THEN
    old_facts := to_jsonb(OLD) - 'made_as' - TG_ARGV[2:];
    IF old_facts = now_facts THEN
      RETURN NULL;
    END IF;
  END IF;
  SELECT max(number) INTO last FROM records WHERE kind = of_kind AND subject = of_subject;
  IF TG_OP = 'UPDATE' THEN
    IF last IS NULL AND to_jsonb(OLD) ->> 'made_as' IS NULL THEN  -- a row from before there were records
      INSERT INTO records VALUES (of_kind, of_subject, 1, clock_timestamp(), old_facts);
      last := 1;
    END IF;
    SELECT jsonb_object_agg(key, value) INTO now_facts FROM jsonb_each(now_facts)
    WHERE value IS DISTINCT FROM old_facts -> key;
  END IF;
  INSERT INTO records VALUES (of_kind, of_subject, coalesce(last, 0) + 1, clock_timestamp(), now_facts);
  RETURN NULL;
END $$
"""

# A second row costs a hot insert too much (measured: 180 us against 15), so the row keeps its first values itself.
_RECORD_MAKING = """
CREATE OR REPLACE FUNCTION record_making() RETURNS trigger LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
  NEW.made_as := to_jsonb(NEW) - 'made_as';
  RETURN NEW;
END $$
"""

_REFUSE = """
CREATE OR REPLACE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% of % is refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'insufficient_privilege';
END $$
"""

# From this time on a row without a record is an error: its record was removed. A table that has rows already gets a
# minute, because the clock of the process that made the last of them may be ahead.
_SINCE = """
INSERT INTO records
SELECT 'recorded', '{kind}', 1,
       CASE WHEN EXISTS (SELECT FROM {table}) THEN clock_timestamp() + interval '1 minute' ELSE '-infinity' END, '{{}}'
ON CONFLICT DO NOTHING
"""


@contextmanager
def each_by_itself() -> Iterator[None]:
    """Runs each statement of the block in its own transaction."""
    with op.get_context().autocommit_block():
        yield


def make_records() -> None:
    """Makes the table `records`, which only grows, and the functions that the other steps use."""
    with each_by_itself():
        for statement in (_RECORDS, _RECORD_CHANGE, _RECORD_MAKING, _REFUSE):
            op.execute(statement)
    append_only("records")


def make_refusal() -> None:
    """Makes the function that `append_only`, `stay` and `keep` use, for a database without records."""
    with each_by_itself():
        op.execute(_REFUSE)


def record(
    table: str, kind: str, *, subject: str = "id", apart_from: Sequence[str] = (), made_in_row: bool = False
) -> None:
    """Lets every insert into the table, and every change of a column, make a record of this kind.

    With `made_in_row` an insert makes none: the row keeps its first values in its column `made_as`.
    """
    arguments = ", ".join(f"'{each}'" for each in (kind, subject, *apart_from))
    events = "UPDATE" if made_in_row else "INSERT OR UPDATE"
    with each_by_itself():
        if made_in_row:
            op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS made_as jsonb")
            op.execute(
                f"CREATE OR REPLACE TRIGGER {table}_are_made BEFORE INSERT ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION record_making()"
            )
        op.execute(
            f"CREATE OR REPLACE TRIGGER {table}_are_recorded AFTER {events} ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION record_change({arguments})"
        )
        op.execute(_SINCE.format(kind=kind, table=table))


def append_only(table: str) -> None:
    """Lets rows be added, never changed or deleted."""
    _refuse_statement(table, "are_append_only", "UPDATE OR DELETE OR TRUNCATE", "rows are only added")


def stay(table: str) -> None:
    """Refuses to delete rows."""
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
    with each_by_itself():
        op.execute(
            f"CREATE OR REPLACE TRIGGER {table}_{name} BEFORE {events} ON {table}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting('{why}')"
        )


def _refuse_row(table: str, name: str, condition: str, why: str) -> None:
    with each_by_itself():
        op.execute(
            f"CREATE OR REPLACE TRIGGER {table}_{name} BEFORE UPDATE ON {table}"
            f" FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION refuse_rewriting('{why}')"
        )
