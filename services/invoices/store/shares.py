"""The share of a payment method that one merchant may hold: SQL for creating an invoice and for opening a deal.

A method's requisites are few, and every open deal holds one of their places, an appeal for days. One merchant may hold
at most `share_percent` of the places that no other merchant holds: of its own and the free ones together. So however
many one merchant takes, some stay free for the others, and a merchant that holds none may always take a free one. The
same rule counts the requisites that can take one amount, because two open deals of one amount never share a requisite
(docs/decisions/0040-shares-of-scarce-accounts.md).
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, text

from services.invoices.domain.places import Room, Wanted
from services.invoices.models import DEAL_IS_OPEN


def accounts_of(method_code: str, amount_fiat: str) -> str:
    """Returns the SELECT of the method's enabled requisites. `free` counts places; `holder` is the merchant whose open
    deal has the amount, null when there is none. The arguments are SQL. OFFSET 0 makes PostgreSQL compute `holder` once
    per requisite.
    """
    return f"""
    SELECT id, open_deals, max_deals, max_deals - open_deals AS free, last_used_at, (
        SELECT merchant_id FROM deals
        WHERE requisite_id = requisites.id AND deals.amount_fiat = {amount_fiat} AND {DEAL_IS_OPEN}
    ) AS holder
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


_ROOMS = text(f"""
SELECT wanted.method_code, room.*, (
    SELECT count(*) FROM deals JOIN requisites ON requisites.id = deals.requisite_id
    WHERE merchant_id = :merchant_id AND deals.method_code = wanted.method_code AND {DEAL_IS_OPEN} AND enabled
) AS own
FROM unnest(CAST(:method_codes AS text[]), CAST(:amounts_fiat AS numeric[])) AS wanted (method_code, amount_fiat)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(open_deals), 0) AS taken, coalesce(sum(free), 0) AS free, count(*) AS accounts,
           count(*) FILTER (WHERE holder IS NULL AND free > 0) AS free_accounts,
           count(*) FILTER (WHERE holder = :merchant_id) AS own_accounts
    FROM ({accounts_of("wanted.method_code", "wanted.amount_fiat")}) AS accounts
) AS room
""")  # noqa: S608  made of constants


def rooms(connection: Connection, merchant_id: UUID, wanted: Sequence[Wanted]) -> Sequence[Room]:
    """Returns the free places of each method, counted without the lock."""
    values = {
        "merchant_id": merchant_id,
        "method_codes": [each.method_code for each in wanted],
        "amounts_fiat": [each.amount_fiat for each in wanted],
    }
    return [Room(**row._mapping) for row in connection.execute(_ROOMS, values)]
