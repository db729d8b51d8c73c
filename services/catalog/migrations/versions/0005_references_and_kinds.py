"""Methods say whether their transfers carry a reference, and what their accounts are"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "payment_methods",
        sa.Column("takes_reference", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.add_column(
        "payment_methods",
        sa.Column("account_kind", sa.Text(), server_default=sa.text("'free'"), nullable=False),
    )
    op.create_check_constraint(
        op.f("ck_payment_methods_account_kind"),
        "payment_methods",
        "account_kind IN ('free', 'iban', 'card', 'phone', 'upi')",
    )
