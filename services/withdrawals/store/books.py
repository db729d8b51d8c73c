"""Invariants of withdrawals, their records and the ledger (kit.db.books). `checks` has the amounts and accounts of the
transfers.
"""

from typing import Final

from kit.db.books import Part

# Rows and their transfers are written in one transaction, with one time.
_TIMES_ARE_THOSE_OF_THE_TRANSFERS = """
SELECT withdrawals.id, compared.field, compared.found, compared.due
FROM withdrawals
CROSS JOIN LATERAL (VALUES ('created_at', created_at, 'reserve'), ('processed_at', processed_at, 'pay'),
                           ('processed_at', processed_at, 'release')) AS moved (field, found, step)
JOIN transfers ON transfers.reference = 'withdrawal:' || withdrawals.id || ':' || moved.step
CROSS JOIN LATERAL (VALUES (moved.field, moved.found, transfers.created_at)) AS compared (field, found, due)
WHERE withdrawals.id > CAST(:first AS uuid) AND withdrawals.id <= CAST(:last AS uuid)
  AND compared.found <> compared.due
"""

PARTS: Final = (
    Part(
        name="withdrawals",
        one="withdrawal",
        table="withdrawals",
        kind="withdrawal",
        kept=(
            "merchant_id",
            "request_key",
            "method_id",
            "network",
            "address",
            "address_memo",
            "amount",
            "network_fee",
        ),
        follows=(_TIMES_ARE_THOSE_OF_THE_TRANSFERS,),
    ),
    Part(
        name="withdrawal addresses",
        one="withdrawal address",
        table="withdrawal_addresses",
        kind="address",
        kept=(
            "merchant_id",
            "method_id",
            "network",
            "address",
            "address_memo",
            "name",
            "added_by",
            "usable_at",
        ),
    ),
    Part(
        name="withdrawal methods",
        one="withdrawal method",
        table="withdrawal_methods",
        key_type="bigint",
        kind="method",
        made_at="CAST('-infinity' AS timestamptz)",  # no column has the time
        kept=("id", "code", "network"),
    ),
)
