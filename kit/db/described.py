"""The description of a schema: tables with columns, constraints, indexes, triggers, rules and policies, and functions.

`fiatgate verify` compares them with `migrations/schema.txt` of the service. `python -m tests.support.schemas` writes it
from a database that was just migrated.

Left out is what differs without a change: owners, rights of roles other than PUBLIC and the service's own, partitions
by month where they are as their table, and views and functions of an extension.
"""

import importlib.resources
import re
from collections.abc import Iterator, Mapping
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from kit.db.books import Difference, Part

Described = Mapping[tuple[str, str], str]
"""By relation or function, and by part of it ("trigger move_balances"): its definition."""

_MINE: Final = """
NOT EXISTS (SELECT FROM pg_depend WHERE objid = {oid} AND classid = '{catalog}'::regclass AND deptype = 'e')
"""
_RELATIONS: Final = f"""
SELECT c.*, relname::text AS name FROM pg_class c
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
  AND (relkind <> 'v' OR {_MINE.format(oid="c.oid", catalog="pg_class")})
"""  # noqa: S608  made of constants
_DESCRIBED: Final = text(f"""
WITH relations AS ({_RELATIONS})
SELECT name, 'relation', concat_ws(' ', relkind, relpersistence, (
  SELECT string_agg(inhparent::regclass::text, ' ') FROM pg_inherits WHERE inhrelid = relations.oid), (
  SELECT string_agg('above ' || child.oid::regclass, ' ') FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
  WHERE inhparent = relations.oid AND NOT child.relispartition))
  FROM relations WHERE NOT relispartition OR relkind = 'f'
UNION ALL SELECT name, 'rights', string_agg(concat(CASE WHEN grantee = 0 THEN 'PUBLIC ' END, privilege_type, on_column),
    ', ' ORDER BY grantee, privilege_type, on_column)
  FROM relations CROSS JOIN LATERAL (
    SELECT relacl AS acl, '' AS on_column
    UNION ALL SELECT attacl, format(' (%s)', attname) FROM pg_attribute WHERE attrelid = oid) AS given
  CROSS JOIN aclexplode(acl)
  WHERE grantee IN (0, current_user::regrole)
    AND EXISTS (SELECT FROM relations WHERE relowner <> current_user::regrole)
  GROUP BY name
UNION ALL SELECT name, 'row security', concat_ws(' ', relrowsecurity, relforcerowsecurity)
  FROM relations WHERE relrowsecurity OR relforcerowsecurity
UNION ALL SELECT name, 'column ' || attname, concat_ws(' ', format_type(atttypid, atttypmod),
    CASE WHEN attcollation NOT IN (0, 'pg_catalog."default"'::regcollation) THEN attcollation::regcollation END,
    CASE WHEN attnotnull THEN 'not null' END, nullif(attidentity, ''), nullif(attgenerated, ''),
    pg_get_expr(adbin, adrelid))
  FROM relations JOIN pg_attribute ON attrelid = oid AND attnum > 0 AND NOT attisdropped
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE NOT relispartition
UNION ALL SELECT name, 'constraint ' || conname, concat_ws(' ', pg_get_constraintdef(con.oid),
    CASE WHEN NOT convalidated THEN 'not valid' END)
  FROM relations JOIN pg_constraint con ON conrelid = relations.oid
  WHERE contype <> 'n' AND conparentid = 0 AND coninhcount = 0 AND NOT (relispartition AND contype IN ('p', 'u'))
UNION ALL SELECT name, 'index ' || indexrelid::regclass, pg_get_indexdef(indexrelid)
  FROM relations JOIN pg_index ON indrelid = oid WHERE NOT relispartition AND indisvalid
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = indrelid)
UNION ALL SELECT name, 'trigger ' || t.tgname, concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid))
  FROM relations JOIN pg_trigger t ON t.tgrelid = relations.oid
  LEFT JOIN pg_trigger above ON above.oid = t.tgparentid
  WHERE t.tgenabled IS DISTINCT FROM CASE WHEN t.tgisinternal THEN 'O' ELSE above.tgenabled END
UNION ALL SELECT name, 'rule ' || rulename, concat_ws(' ', ev_enabled, pg_get_ruledef(rule.oid))
  FROM relations JOIN pg_rewrite rule ON ev_class = relations.oid
UNION ALL SELECT name, 'policy ' || polname, concat_ws(' ', polcmd, polpermissive, polroles::regrole[],
    pg_get_expr(polqual, polrelid), 'with', pg_get_expr(polwithcheck, polrelid))
  FROM relations JOIN pg_policy ON polrelid = relations.oid
UNION ALL SELECT proname || '(' || oidvectortypes(proargtypes) || ')', 'function', concat_ws(' ', lanname,
    provolatile, CASE WHEN proisstrict THEN 'strict' END, CASE WHEN prosecdef THEN 'security definer' END,
    array_to_string(proconfig, ' '), md5(prosrc))
  FROM pg_proc f JOIN pg_language l ON l.oid = prolang
  WHERE pronamespace = 'public'::regnamespace AND {_MINE.format(oid="f.oid", catalog="pg_proc")}
UNION ALL SELECT oid::regoperator::text, 'operator', oprcode::text FROM pg_operator o
  WHERE oprnamespace = 'public'::regnamespace AND {_MINE.format(oid="o.oid", catalog="pg_operator")}
UNION ALL SELECT 'session', name, setting FROM pg_settings
  WHERE (name, setting) IN (('session_replication_role', 'replica'), ('session_replication_role', 'local'),
    ('track_activities', 'on'))
""")  # noqa: S608  made of constants
_REVISION: Final = text("SELECT version_num FROM alembic_version")


_TOKENS: Final = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|[()]|[^\s()'"]+|\s+""")
_JOINS: Final = frozenset({"AND", "OR"})


def describe(connection: Connection | Session) -> Described:
    """Returns the description of the schema `public`."""
    return {
        (name, part): flat(" ".join(value.split())) for name, part, value in connection.execute(_DESCRIBED)
    }


def flat(definition: str) -> str:
    """Returns the definition without the parentheses of `(a AND b) AND c`: a restored dump has none there."""
    tokens = iter(_TOKENS.findall(definition))
    return "".join(_flat_group(tokens))


def _flat_group(tokens: Iterator[str]) -> list[str]:
    """Returns the items up to the end of a group. One that is a group itself begins with a parenthesis."""
    items: list[str] = []
    inner: dict[int, list[str]] = {}
    for each in tokens:
        if each == ")":
            break
        if each == "(":
            group = inner[len(items)] = _flat_group(tokens)
            items.append(f"({''.join(group)})")
        else:
            items.append(each)
    joins = _JOINS.intersection(items)
    for at, group in reversed(inner.items()):
        around = {near for near in items[max(0, at - 2) : at] + items[at + 1 : at + 3] if near.strip()}
        if joins and around <= joins and _JOINS.intersection(group) == joins and len(joins) == 1:
            items[at : at + 1] = group
    return items


def written(revision: str, described: Described) -> str:
    """Returns the text of schema.txt."""
    lines = (f"{name} | {part} | {value}\n" for (name, part), value in sorted(described.items()))
    return f"{revision}\n{''.join(lines)}"


def read(service: str) -> tuple[str, Described]:
    """Returns the revision and the description of schema.txt."""
    file = importlib.resources.files(f"services.{service}.migrations") / "schema.txt"
    revision, *lines = file.read_text().splitlines()
    rows = (line.split(" | ", 2) for line in lines)
    return revision, {(name, part): value for name, part, value in rows}


def schema_part(service: str) -> Part:
    """Returns the part of `fiatgate verify` that compares the schema."""

    def follows(tx: Session, first: str, last: str) -> Iterator[Difference]:
        revision, due = read(service)
        if (there := tx.scalar(_REVISION)) != revision:
            if not first:
                yield (
                    "alembic_version",
                    "revision",
                    there,
                    f"{revision}, of which this version knows the schema",
                )
            return
        found = describe(tx)
        owns_all = not any(part == "rights" for _, part in found)
        for key in sorted(found.keys() | due.keys()):
            if key[1] == "rights" and owns_all:
                continue
            if first < key[0] <= last and found.get(key) != due.get(key):
                yield *key, found.get(key, "nothing"), due.get(key, "nothing")

    relations = f"({_RELATIONS}) AS relations"
    return Part(
        name="schema", one="relation", table=relations, key="name", key_type="text", follows=(follows,)
    )
