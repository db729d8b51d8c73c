"""The first opening of each payment page, and where the rate of each deal came from"""

from alembic import op

from kit.db.migrations import guards

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

DEAL_TERMS = (
    "id",
    "invoice_id",
    "merchant_id",
    "method_code",
    "method_name",
    "currency_code",
    "currency_decimals",
    "invoice_amount",
    "conversion_rate",
    "client_percent",
    "merchant_percent",
    "requisite_id",
    "created_at",
    "expires_at",
    "reference",
    "takes_reference",
    "rate_basis",
)


def upgrade() -> None:
    # A table of its own, without a foreign key: a second version of the invoice's row and its record would cost the
    # page ten times as much (docs/decisions/0070).
    with guards.each_by_itself():
        op.execute(
            "CREATE TABLE IF NOT EXISTS page_openings ("
            " invoice_id uuid NOT NULL, at timestamp with time zone NOT NULL,"
            " CONSTRAINT pk_page_openings PRIMARY KEY (invoice_id))"
        )
        op.execute("ALTER TABLE deals ADD COLUMN IF NOT EXISTS rate_basis jsonb")
    guards.append_only("page_openings")
    guards.keep("deals", DEAL_TERMS, ended="finished_at")
