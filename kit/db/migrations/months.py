"""Steps that divide a table of history by month (docs/decisions/0031).

The table, just made and empty, becomes the head of partitions: one for all rows until the end of this month
(`…_before`), one for each month, and one for the rows of months that have none yet (`…_rest`), so that an insert never
fails for want of a partition. Each has the keys, indexes and triggers of the table. Unique keys hold within a
partition.

The service's role may not change tables. It calls functions, which run with their owner's rights: `add_months` makes
the partitions of the next months and of holes among them, `drop_old_months` drops the oldest ones. Neither waits longer
than half a second for a lock, because whoever uses the table would wait behind it; they are called again later.
"""

from alembic import op

# The triggers of `template` that fire once for each row belong to the head, which gives them to each partition.
# Those that fire once for each statement do not, so each partition gets its own.
_COPY_TRIGGERS = """
CREATE FUNCTION copy_triggers(template regclass, to_table regclass, by_row boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_template record;
BEGIN
  FOR of_template IN
    SELECT pg_get_triggerdef(oid) AS definition FROM pg_trigger
    WHERE tgrelid = template AND NOT tgisinternal AND (tgtype & 1 = 1) = by_row
  LOOP
    EXECUTE replace(of_template.definition, format(' ON %s ', template), format(' ON %s ', to_table));
  END LOOP;
END $$
"""

# Partitions with their ends: none for the rest. Without a place in the search path pg_temp would come first, and tables
# of the caller would stand for those of the catalog.
_MONTHS_OF = """
CREATE FUNCTION months_of(head text) RETURNS TABLE (name text, until timestamptz) LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC' AS $$
  SELECT month.relname, CAST(substring(pg_get_expr(relpartbound, oid) FROM 'TO \\(''([^'']+)''\\)') AS timestamptz)
  FROM pg_inherits JOIN pg_class AS month ON oid = inhrelid
  WHERE inhparent = to_regclass(quote_ident(head)) AND relispartition
$$
"""

# All months after the oldest partition, so also a hole. A month stays without one while a table has its name: the owner
# has detached it to archive it. Rows that came to the rest meanwhile move, past the triggers that keep them: PostgreSQL
# refuses to attach a partition whose rows are elsewhere.
_ADD_MONTHS = """
CREATE FUNCTION add_months(head text, ahead integer) RETURNS integer LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC' SET lock_timeout = '500ms' AS $$
DECLARE
  -- No caller can have a heap of tables made.
  last_month CONSTANT timestamptz := date_trunc('month', now()) + least(ahead, 12) * interval '1 month';
  rest CONSTANT text := head || '_rest';
  month timestamptz := (SELECT min(until) FROM months_of(head));
  ends CONSTANT timestamptz[] := ARRAY(SELECT until FROM months_of(head));
  by_time name;
  new text;
  in_rest boolean;
  made integer := 0;
BEGIN
  SELECT attname INTO by_time FROM pg_partitioned_table
  JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
  WHERE partrelid = to_regclass(quote_ident(head));
  WHILE month <= last_month LOOP
    new := head || to_char(month, '_YYYY_MM');
    IF month + interval '1 month' = ANY (ends) OR to_regclass(quote_ident(new)) IS NOT NULL THEN
      month := month + interval '1 month';
      CONTINUE;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', rest);
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL EXCLUDING IDENTITY)', new, rest);
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I >= %L AND %I < %L)',
                   rest, by_time, month, by_time, month + interval '1 month') INTO in_rest;
    IF in_rest THEN
      EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', rest);
      EXECUTE format('WITH late AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *)
                      INSERT INTO %I SELECT * FROM late',
                     rest, by_time, month, by_time, month + interval '1 month', new);
      EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', rest);
    END IF;
    PERFORM copy_triggers(to_regclass(quote_ident(rest)), to_regclass(quote_ident(new)), false);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   head, new, month, month + interval '1 month');
    month := month + interval '1 month';
    made := made + 1;
  END LOOP;
  RETURN made;
EXCEPTION WHEN lock_not_available THEN
  RETURN 0;
END $$
"""

# `in_use` finds a row of the partition %1$I, which ends at %2$L, that must stay. A month that somebody uses stays too.
# The first month that stays keeps all later ones, so that of the rows of one thing always the newest are left.
_DROP_OLD_MONTHS = """
CREATE FUNCTION drop_old_months_of_{head}(before timestamptz) RETURNS SETOF text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC' SET lock_timeout = '500ms' AS $$
DECLARE
  old record;
  stays boolean;
BEGIN
  FOR old IN
    SELECT name, until FROM months_of('{head}')
    WHERE until <= least(before, now() - interval '{youngest}') ORDER BY until
  LOOP
    BEGIN
      EXECUTE format($query$ SELECT EXISTS ({in_use}) $query$, old.name, old.until) INTO stays;
      IF NOT stays THEN
        EXECUTE format('DROP TABLE %I', old.name);
      END IF;
    EXCEPTION WHEN lock_not_available THEN
      stays := true;
    END;
    EXIT WHEN stays;
    RETURN NEXT old.name;
    -- The first month may have locked the whole table until the end, so the others wait for nobody.
    SET LOCAL lock_timeout = '1ms';
  END LOOP;
END $$
"""

_DIVIDE = """
DO $$
DECLARE
  bound CONSTANT text := date_trunc('month', now(), 'UTC') + interval '1 month';
  each record;
BEGIN
  ALTER TABLE {table} ALTER id DROP IDENTITY;
  ALTER TABLE {table} RENAME TO {table}_before;
  CREATE TABLE {table} (LIKE {table}_before INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)
    PARTITION BY RANGE ({column});
  ALTER TABLE {table} ALTER id ADD GENERATED ALWAYS AS IDENTITY;
  FOR each IN
    SELECT conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint
    WHERE conrelid = '{table}_before'::regclass AND contype = 'f'
  LOOP
    EXECUTE format('ALTER TABLE {table} ADD CONSTRAINT %I %s', each.conname, each.definition);
  END LOOP;
  PERFORM copy_triggers('{table}_before', '{table}', false);
  PERFORM copy_triggers('{table}_before', '{table}', true);
  FOR each IN
    SELECT tgname FROM pg_trigger WHERE tgrelid = '{table}_before'::regclass AND NOT tgisinternal AND tgtype & 1 = 1
  LOOP
    EXECUTE format('DROP TRIGGER %I ON {table}_before', each.tgname);
  END LOOP;
  EXECUTE format('ALTER TABLE {table} ATTACH PARTITION {table}_before FOR VALUES FROM (MINVALUE) TO (%L)', bound);
  CREATE TABLE {table}_rest (LIKE {table}_before INCLUDING ALL EXCLUDING IDENTITY);
  PERFORM copy_triggers('{table}_before', '{table}_rest', false);
  ALTER TABLE {table} ATTACH PARTITION {table}_rest DEFAULT;
END $$
"""


def divide(table: str, column: str, *, in_use: str, youngest: str, ahead: int) -> None:
    """Divides the empty table, which has an identity column `id`, by the month of `column`.

    `drop_old_months_of_…` drops no partition in which `in_use` finds a row, and none that ended within the interval
    `youngest`; `in_use` names the partition %1$I and its end %2$L.
    """
    for statement in (_COPY_TRIGGERS, _MONTHS_OF, _ADD_MONTHS):
        op.execute(statement)
    op.execute(_DROP_OLD_MONTHS.format(head=table, in_use=in_use, youngest=youngest))
    op.execute(_DIVIDE.format(table=table, column=column))
    op.execute(f"SELECT add_months('{table}', {ahead})")
