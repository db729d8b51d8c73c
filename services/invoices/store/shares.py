"""The share of a payment method that one merchant may hold: SQL for creating an invoice and for opening a deal.

A method's requisites are few, and every open deal holds one of their places, an appeal for days. One merchant may hold
at most `share_percent` of the places that no other merchant holds: of its own and the free ones together. So however
many one merchant takes, some stay free for the others, and a merchant that holds none may always take a free one. The
same rule counts the requisites that can take one amount, because two open deals of one amount share a requisite only if
the transfers of both carry a reference (docs/decisions/0005-shares-of-scarce-accounts.md, 0006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, text

from kit.db.database import Database
from kit.db.prepared import Prepared
from services.invoices.domain.places import Room, Wanted
from services.invoices.models import DEAL_IS_OPEN


def accounts_of(method_code: str, amount_fiat: str, takes_reference: str) -> str:
    """Returns the SELECT of the method's enabled requisites. `free` counts places; `holder` is the merchant whose open
    deal stands against another one of the amount, null when there is none. The arguments are SQL. OFFSET 0 makes
    PostgreSQL compute `holder` once per requisite.
    """
    deals_of_amount = f"""
        SELECT merchant_id FROM deals
        WHERE requisite_id = requisites.id AND deals.amount_fiat = {amount_fiat} AND {DEAL_IS_OPEN}"""  # noqa: S608
    alone = f"({deals_of_amount} AND NOT deals.takes_reference)"
    holder = f"CASE WHEN {takes_reference} THEN {alone} ELSE ({deals_of_amount} LIMIT 1) END"
    return f"""
    SELECT id, open_deals, max_deals, max_deals - open_deals AS free, last_used_at, {holder} AS holder
    FROM requisites
    WHERE method_code = {method_code} AND enabled
    OFFSET 0"""  # noqa: S608  made of constants


def may_have_place(accounts: str, method_code: str) -> str:
    """Returns the SQL condition that the merchant `:merchant_id` may take one more place of `accounts`, a relation of
    `accounts_of`.

    The merchant's deals are counted only if the places of all merchants together exceed the share of one.
    """
    own_deals = f"""(
        SELECT count(*) FROM deals JOIN requisites ON requisites.id = deals.requisite_id
        WHERE merchant_id = :merchant_id AND deals.method_code = {method_code} AND {DEAL_IS_OPEN} AND enabled
    )"""  # noqa: S608  made of constants
    return f"""(
        SELECT {_within_share("own_accounts", "free_accounts")}
           AND CASE WHEN {_within_share("taken", "free")} THEN true ELSE {_within_share(own_deals, "free")} END
        FROM (
            SELECT sum(open_deals) AS taken, sum(free) AS free,
                   count(*) FILTER (WHERE holder = :merchant_id) AS own_accounts,
                   count(*) FILTER (WHERE holder IS NULL AND free > 0) AS free_accounts
            FROM {accounts}
        ) AS room
    )"""  # noqa: S608  made of constants


def _within_share(own: str, free: str) -> str:
    """Returns the SQL condition that `own` places and one more are at most the share of `own` and `free` together, or
    that it is the first one.

    `own` may be a query, so it appears here once; the second argument of `greatest` is what allows the first one.
    """
    most = f"greatest(({free} - 1) * :share_percent, 100 - :share_percent)"
    return f"({free} > 0 AND ({own} + 1) * (100 - :share_percent) <= {most})"


# An account where a deal stands against the amount becomes free with that deal, another one with any.
_FREE_FROM = f"""
    SELECT min(deals.expires_at) FROM accounts JOIN deals ON deals.requisite_id = accounts.id
    WHERE {DEAL_IS_OPEN} AND sub_status = 'awaiting_payment'
      AND (accounts.holder IS NULL OR deals.amount_fiat = wanted.amount_fiat)"""  # noqa: S608  made of constants


@dataclass(frozen=True, slots=True)
class Openings:
    """For each wanted place whether it is free, and the earliest time at which it may become free, if known."""

    free: Sequence[bool]
    free_from: Sequence[datetime | None]


_ACCOUNTS: Final = accounts_of("wanted.method_code", "wanted.amount_fiat", "wanted.takes_reference")
_OPENINGS: Final = Prepared(
    "openings",
    f"""
SELECT coalesce(array_agg(free ORDER BY number), '{{}}'), coalesce(array_agg(free_from ORDER BY number), '{{}}')
FROM (
    SELECT number, free, CASE WHEN NOT free THEN (WITH accounts AS ({_ACCOUNTS}) {_FREE_FROM}) END AS free_from
    FROM unnest(:method_codes, :amounts_fiat, :takes_references)
      WITH ORDINALITY AS wanted (method_code, amount_fiat, takes_reference, number)
    CROSS JOIN LATERAL (
        SELECT coalesce({may_have_place(f"({_ACCOUNTS}) AS accounts", "wanted.method_code")}, false) AS free
    ) AS room
) AS each
""",  # noqa: S608  made of constants
    {
        "merchant_id": "uuid",
        "method_codes": "text[]",
        "amounts_fiat": "numeric[]",
        "takes_references": "boolean[]",
        "share_percent": "bigint",
    },
    Openings,
)


def openings(db: Database, merchant_id: UUID, wanted: Sequence[Wanted], *, share_percent: int) -> Openings:
    """Returns which of the places the merchant could have now, counted without the lock."""
    values = _arrays(wanted) | {"merchant_id": merchant_id, "share_percent": share_percent}
    found = db.one_or_none(_OPENINGS, values)
    assert found is not None
    return found


def _arrays(wanted: Sequence[Wanted]) -> dict[str, Any]:
    return {
        "method_codes": [each.method_code for each in wanted],
        "amounts_fiat": [each.amount_fiat for each in wanted],
        "takes_references": [each.takes_reference for each in wanted],
    }


_ROOMS: Final = text(f"""
SELECT wanted.method_code, room.*, (
    SELECT count(*) FROM deals JOIN requisites ON requisites.id = deals.requisite_id
    WHERE merchant_id = :merchant_id AND deals.method_code = wanted.method_code AND {DEAL_IS_OPEN} AND enabled
) AS own
FROM unnest(
    CAST(:method_codes AS text[]), CAST(:amounts_fiat AS numeric[]), CAST(:takes_references AS boolean[])
) AS wanted (method_code, amount_fiat, takes_reference)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(open_deals), 0) AS taken, coalesce(sum(free), 0) AS free, count(*) AS accounts,
           count(*) FILTER (WHERE holder IS NULL AND free > 0) AS free_accounts,
           count(*) FILTER (WHERE holder = :merchant_id) AS own_accounts
    FROM ({_ACCOUNTS}) AS accounts
) AS room
""")  # noqa: S608  made of constants


def rooms(connection: Connection, merchant_id: UUID, wanted: Sequence[Wanted]) -> Sequence[Room]:
    """Returns the free places of each method, counted without the lock."""
    values = _arrays(wanted) | {"merchant_id": merchant_id}
    return [Room(**row._mapping) for row in connection.execute(_ROOMS, values)]
