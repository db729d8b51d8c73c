"""History that stays: records of every change, requests that are kept, rows that are never deleted"""

from alembic import op

from kit.db.migrations import guards

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

WITHDRAWAL_TERMS = (
    "id",
    "merchant_id",
    "request_key",
    "method_id",
    "network",
    "address",
    "address_memo",
    "amount",
    "network_fee",
    "created_at",
)


def upgrade() -> None:
    guards.make_records()
    guards.record("withdrawals", "withdrawal")
    guards.keep("withdrawals", WITHDRAWAL_TERMS, ended="processed_at")
    guards.stay("withdrawals")
    guards.record("withdrawal_methods", "method")
    guards.stay("withdrawal_methods")
    # Runs with its owner's rights: the service's role has no right to change a balance.
    op.execute("ALTER FUNCTION move_balances() SECURITY DEFINER SET search_path = pg_catalog, public")
