"""People, roles, invitations, factors, sessions, counters of guesses, signing keys, e-mails to send"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_NO_ROLES = sa.text("'{}'")
_STAFF = "ARRAY['viewer', 'desk', 'treasury', 'prices', 'admin', 'auditor']"
_MEMBERS = "ARRAY['owner', 'developer', 'finance', 'viewer']"


def upgrade() -> None:
    op.create_table(
        "challenges",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Uuid()),
        sa.Column("challenge", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.CheckConstraint("kind IN ('sign_in', 'step_up', 'register')", name=op.f("ck_challenges_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_challenges")),
    )
    op.create_index("ix_challenges_expires_at", "challenges", ["expires_at"])
    op.create_table(
        "guesses",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_at", _TIME, nullable=False),
        sa.Column("delayed_until", _TIME, nullable=False),
        sa.CheckConstraint("kind IN ('network', 'person', 'step_up')", name=op.f("ck_guesses_kind")),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_guesses_failures")),
        sa.PrimaryKeyConstraint("kind", "subject", name=op.f("pk_guesses")),
    )
    op.create_index("ix_guesses_last_at", "guesses", ["last_at"])
    op.create_table(
        "invitations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("roles", sa.ARRAY(sa.Text()), server_default=_NO_ROLES, nullable=False),
        sa.Column("merchant_id", sa.Uuid()),
        sa.Column("member_roles", sa.ARRAY(sa.Text()), server_default=_NO_ROLES, nullable=False),
        sa.Column("invited_by", sa.Text(), nullable=False),
        sa.Column("by_operator", sa.Boolean(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("used_at", _TIME),
        sa.Column("withdrawn_at", _TIME),
        sa.CheckConstraint(
            f"CASE WHEN merchant_id IS NULL THEN roles <@ {_STAFF} AND cardinality(roles) > 0"
            f" AND cardinality(member_roles) = 0 ELSE member_roles <@ {_MEMBERS}"
            " AND cardinality(member_roles) > 0 AND cardinality(roles) = 0 END",
            name=op.f("ck_invitations_roles"),
        ),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 128", name=op.f("ck_invitations_name")),
        sa.CheckConstraint(
            'email = lower(email COLLATE "C") AND char_length(email) <= 254',
            name=op.f("ck_invitations_email"),
        ),
        sa.CheckConstraint("octet_length(token_hash) = 32", name=op.f("ck_invitations_token_hash")),
        sa.CheckConstraint("used_at IS NULL OR withdrawn_at IS NULL", name=op.f("ck_invitations_one_end")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_invitations_token_hash")),
    )
    op.create_index("ix_invitations_expires_at", "invitations", ["expires_at"])
    op.create_index("ix_invitations_merchant_id", "invitations", ["merchant_id"])
    op.create_table(
        "people",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("roles", sa.ARRAY(sa.Text()), server_default=_NO_ROLES, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("disabled_at", _TIME),
        sa.Column("last_seen_at", _TIME),
        sa.Column("password_hash", sa.Text()),
        sa.Column("password_set_at", _TIME),
        sa.CheckConstraint(
            f"roles <@ {_STAFF}",
            name=op.f("ck_people_roles"),
        ),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 128", name=op.f("ck_people_name")),
        sa.CheckConstraint(
            'email = lower(email COLLATE "C") AND char_length(email) <= 254', name=op.f("ck_people_email")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("email", name=op.f("uq_people_email")),
    )
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_private_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("replaced_at", _TIME),
        sa.CheckConstraint("octet_length(public_key) = 32", name=op.f("ck_signing_keys_public_key")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signing_keys")),
    )
    op.create_table(
        "mails",
        sa.Column("invitation_id", sa.Uuid(), nullable=False),
        sa.Column("sealed_link", sa.LargeBinary(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", _TIME, nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["invitation_id"], ["invitations.id"], name=op.f("fk_mails_invitation_id")),
        sa.PrimaryKeyConstraint("invitation_id", name=op.f("pk_mails")),
    )
    op.create_index("ix_mails_due_at", "mails", ["due_at"])
    op.create_table(
        "memberships",
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=False),
        sa.Column("roles", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.CheckConstraint(
            f"roles <@ {_MEMBERS} AND cardinality(roles) > 0",
            name=op.f("ck_memberships_roles"),
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_memberships_person_id")),
        sa.PrimaryKeyConstraint("person_id", "merchant_id", name=op.f("pk_memberships")),
    )
    op.create_index("ix_memberships_merchant_id", "memberships", ["merchant_id"])
    op.create_table(
        "passkeys",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("rp_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("credential", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("last_used_at", _TIME),
        sa.Column("cloned_at", _TIME),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 64", name=op.f("ck_passkeys_name")),
        sa.CheckConstraint(
            "octet_length(credential_id) BETWEEN 1 AND 1023", name=op.f("ck_passkeys_credential_id")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_passkeys_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkeys")),
        sa.UniqueConstraint("credential_id", name=op.f("uq_passkeys_credential_id")),
    )
    op.create_index("ix_passkeys_person_id", "passkeys", ["person_id"])
    op.create_table(
        "recovery_codes",
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("used_at", _TIME),
        sa.CheckConstraint("octet_length(code_hash) = 32", name=op.f("ck_recovery_codes_code_hash")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_recovery_codes_person_id")),
        sa.PrimaryKeyConstraint("person_id", "code_hash", name=op.f("pk_recovery_codes")),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("way", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("user_agent", sa.Text(), nullable=False),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("last_seen_at", _TIME, nullable=False),
        sa.Column("stepped_up_at", _TIME),
        sa.Column("merchant_id", sa.Uuid()),
        sa.Column("ended_at", _TIME),
        sa.CheckConstraint("surface IN ('desk', 'dashboard')", name=op.f("ck_sessions_surface")),
        sa.CheckConstraint("char_length(user_agent) <= 256", name=op.f("ck_sessions_user_agent")),
        sa.CheckConstraint("octet_length(token_hash) = 32", name=op.f("ck_sessions_token_hash")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_sessions_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_sessions_token_hash")),
    )
    op.create_index("ix_sessions_last_seen_at", "sessions", ["last_seen_at"])
    op.create_index("ix_sessions_person_id", "sessions", ["person_id", "id"])
    op.create_table(
        "totps",
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary()),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("confirmed_at", _TIME),
        sa.Column("sealed_new_secret", sa.LargeBinary()),
        sa.Column("started_at", _TIME),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_totps_person_id")),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_totps")),
    )
