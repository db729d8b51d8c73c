"""Owners, merchants, categories, API keys, and the key under which API keys are looked up"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_FRACTION = sa.Numeric(7, 6)
_NO_CODES = sa.text("'{}'")


def upgrade() -> None:
    op.create_table(
        "owners",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("blocked_at", _TIME),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_owners"),
        sa.UniqueConstraint("email", name="uq_owners_email"),
        sa.CheckConstraint(
            'email = lower(email COLLATE "C") AND char_length(email) <= 254', name=op.f("ck_owners_email")
        ),
    )
    op.create_table(
        "merchants",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("owner_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("activated_at", _TIME),
        sa.Column("banned_at", _TIME),
        sa.Column("category_code", sa.Text()),
        sa.Column("client_share", _FRACTION, nullable=False),
        sa.Column("callback_url", sa.Text()),
        sa.Column("success_url", sa.Text()),
        sa.Column("fail_url", sa.Text()),
        sa.Column("allowed_currencies", sa.ARRAY(sa.Text()), server_default=_NO_CODES, nullable=False),
        sa.Column("allowed_methods", sa.ARRAY(sa.Text()), server_default=_NO_CODES, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_merchants"),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name="fk_merchants_owner_id"),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 128", name=op.f("ck_merchants_name")),
        sa.CheckConstraint("client_share BETWEEN 0 AND 1", name=op.f("ck_merchants_client_share")),
        sa.CheckConstraint("char_length(callback_url) <= 2048", name=op.f("ck_merchants_callback_url")),
        sa.CheckConstraint("char_length(success_url) <= 2048", name=op.f("ck_merchants_success_url")),
        sa.CheckConstraint("char_length(fail_url) <= 2048", name=op.f("ck_merchants_fail_url")),
    )
    op.create_index("ix_merchants_owner_id", "merchants", ["owner_id"])
    op.create_table(
        "categories",
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("commission", _FRACTION, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("code", name="pk_categories"),
        sa.CheckConstraint("code ~ '^[a-z0-9_-]{1,64}$'", name=op.f("ck_categories_code")),
        sa.CheckConstraint("commission BETWEEN 0 AND 1", name=op.f("ck_categories_commission")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("deactivated_at", _TIME),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_api_keys_merchant_id"),
        sa.UniqueConstraint("key_hash", name="uq_api_keys_key_hash"),
        sa.CheckConstraint("octet_length(key_hash) = 32", name=op.f("ck_api_keys_key_hash")),
        sa.CheckConstraint("char_length(name) <= 64", name=op.f("ck_api_keys_name")),
    )
    op.create_index("ix_api_keys_merchant_id", "api_keys", ["merchant_id", "id"])
    op.create_table(
        "lookup_key",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lookup_key"),
        sa.CheckConstraint("id = 1", name=op.f("ck_lookup_key_only_one")),
    )


def downgrade() -> None:
    for table in ("lookup_key", "api_keys", "categories", "merchants", "owners"):
        op.drop_table(table)
