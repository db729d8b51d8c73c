"""Events with their leases, attempts, inbox and parked messages"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("payload_event_id", sa.Uuid(), nullable=False),
        sa.Column("invoice_id", sa.Uuid(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("callback_url", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("auto_attempts", sa.Integer(), nullable=False),
        sa.Column("manual_attempts", sa.Integer(), nullable=False),
        sa.Column("next_retry_at", _TIME),
        sa.Column("last_manual_at", _TIME),
        sa.Column("locked_at", _TIME),
        sa.Column("locked_by", sa.Text()),
        sa.Column("lease_token", sa.Uuid()),
        sa.Column("lease_until", _TIME),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("invoice_id", name="uq_events_invoice_id"),
        sa.UniqueConstraint("payload_event_id", name="uq_events_payload_event_id"),
        sa.CheckConstraint("status IN ('pending', 'success', 'dead')", name=op.f("ck_events_status")),
        sa.CheckConstraint(
            "(status = 'pending') = (next_retry_at IS NOT NULL)", name=op.f("ck_events_next_retry_at")
        ),
        sa.CheckConstraint(
            "num_nulls(locked_at, locked_by, lease_token, lease_until) IN (0, 4)",
            name=op.f("ck_events_lease"),
        ),
        sa.CheckConstraint("auto_attempts >= 0 AND manual_attempts >= 0", name=op.f("ck_events_attempts")),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index(
        "ix_events_due", "events", ["next_retry_at"], postgresql_where=sa.text("status = 'pending'")
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("try_number", sa.Integer(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("http_status", sa.Integer()),
        sa.Column("response_headers", postgresql.JSONB()),
        sa.Column("response_body", sa.Text()),
        sa.Column("error_message", sa.Text()),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        sa.ForeignKeyConstraint(["event_id"], ["events.id"], name="fk_attempts_event_id"),
        sa.UniqueConstraint("event_id", "try_number", name="uq_attempts_event_id_try_number"),
        sa.CheckConstraint("try_number > 0", name=op.f("ck_attempts_try_number")),
        sa.CheckConstraint("trigger IN ('auto', 'manual')", name=op.f("ck_attempts_trigger")),
        sa.CheckConstraint("status IN ('success', 'failure')", name=op.f("ck_attempts_status")),
        sa.CheckConstraint(
            "status = 'failure' OR http_status BETWEEN 200 AND 299", name=op.f("ck_attempts_http_status")
        ),
        sa.CheckConstraint("duration_ms >= 0", name=op.f("ck_attempts_duration_ms")),
    )
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("received_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_inbox"),
    )
    op.create_index("ix_inbox_received_at", "inbox", ["received_at"])
    op.create_table(
        "parked",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failed_at", _TIME, nullable=False),
        sa.Column("parked_at", _TIME),
        sa.PrimaryKeyConstraint("event_id", name="pk_parked"),
    )
    op.create_index(
        "ix_parked_parked", "parked", ["parked_at"], postgresql_where=sa.text("parked_at IS NOT NULL")
    )
