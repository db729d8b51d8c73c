"""Indexes of the operator's lists over all merchants, and of the search"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

ACCOUNT_KEY = "upper(regexp_replace(account, '[^[:alnum:]]', '', 'g'))"


def upgrade() -> None:
    index_beside_traffic("ix_invoices_all", "invoices", ["created_at", "id"])
    index_beside_traffic("ix_invoices_amount", "invoices", ["amount", "created_at", "id"])
    index_beside_traffic("ix_deals_amount", "deals", ["amount_fiat", "created_at", "id"])
    index_beside_traffic("ix_requisites_account", "requisites", [sa.text(ACCOUNT_KEY)])
