"""People with their factors, sessions and e-mails, signing keys; owners, merchants, categories, API keys"""

from alembic import op

from kit.db.migrations import acts, approvals, guards

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_PEOPLE = """
CREATE TABLE people (
  id uuid NOT NULL,
  email text NOT NULL,
  name text NOT NULL,
  roles text[] DEFAULT '{}' NOT NULL,
  created_at timestamp with time zone NOT NULL,
  disabled_at timestamp with time zone,
  last_seen_at timestamp with time zone,
  password_hash text,
  password_set_at timestamp with time zone,
  password_seal bytea,
  CONSTRAINT pk_people PRIMARY KEY (id),
  CONSTRAINT uq_people_email UNIQUE (email),
  CONSTRAINT ck_people_roles CHECK (roles <@ ARRAY['viewer', 'desk', 'treasury', 'prices', 'admin', 'auditor']),
  CONSTRAINT ck_people_name CHECK (char_length(name) BETWEEN 1 AND 128),
  CONSTRAINT ck_people_email CHECK (email = lower(email COLLATE "C") AND char_length(email) <= 254)
);
"""
_MEMBERSHIPS = """
CREATE TABLE memberships (
  person_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  roles text[] NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_memberships PRIMARY KEY (person_id, merchant_id),
  CONSTRAINT fk_memberships_person_id FOREIGN KEY (person_id) REFERENCES people (id),
  CONSTRAINT ck_memberships_roles CHECK (
    roles <@ ARRAY['owner', 'developer', 'finance', 'viewer'] AND cardinality(roles) > 0
  )
);
CREATE INDEX ix_memberships_merchant_id ON memberships (merchant_id);
"""
_INVITATIONS = """
CREATE TABLE invitations (
  id uuid NOT NULL,
  token_hash bytea NOT NULL,
  email text NOT NULL,
  name text NOT NULL,
  roles text[] DEFAULT '{}' NOT NULL,
  merchant_id uuid,
  member_roles text[] DEFAULT '{}' NOT NULL,
  invited_by text NOT NULL,
  by_operator boolean NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  withdrawn_at timestamp with time zone,
  CONSTRAINT pk_invitations PRIMARY KEY (id),
  CONSTRAINT uq_invitations_token_hash UNIQUE (token_hash),
  CONSTRAINT ck_invitations_roles CHECK (
    CASE
      WHEN merchant_id IS NULL THEN
        roles <@ ARRAY['viewer', 'desk', 'treasury', 'prices', 'admin', 'auditor'] AND cardinality(roles) > 0
        AND cardinality(member_roles) = 0
      ELSE
        member_roles <@ ARRAY['owner', 'developer', 'finance', 'viewer'] AND cardinality(member_roles) > 0
        AND cardinality(roles) = 0
    END
  ),
  CONSTRAINT ck_invitations_name CHECK (char_length(name) BETWEEN 1 AND 128 AND char_length(invited_by) <= 600),
  CONSTRAINT ck_invitations_email CHECK (email = lower(email COLLATE "C") AND char_length(email) <= 254),
  CONSTRAINT ck_invitations_token_hash CHECK (octet_length(token_hash) = 32),
  CONSTRAINT ck_invitations_one_end CHECK (used_at IS NULL OR withdrawn_at IS NULL)
);
CREATE INDEX ix_invitations_expires_at ON invitations (expires_at);
CREATE INDEX ix_invitations_merchant_id ON invitations (merchant_id);
"""
_PASSKEYS = """
CREATE TABLE passkeys (
  id uuid NOT NULL,
  person_id uuid NOT NULL,
  rp_id text NOT NULL,
  credential_id bytea NOT NULL,
  credential bytea NOT NULL,
  sign_count bigint NOT NULL,
  name text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  last_used_at timestamp with time zone,
  cloned_at timestamp with time zone,
  seal bytea NOT NULL,
  CONSTRAINT pk_passkeys PRIMARY KEY (id),
  CONSTRAINT uq_passkeys_credential_id UNIQUE (credential_id),
  CONSTRAINT fk_passkeys_person_id FOREIGN KEY (person_id) REFERENCES people (id),
  CONSTRAINT ck_passkeys_name CHECK (char_length(name) BETWEEN 1 AND 64),
  CONSTRAINT ck_passkeys_credential_id CHECK (octet_length(credential_id) BETWEEN 1 AND 1023)
);
CREATE INDEX ix_passkeys_person_id ON passkeys (person_id);
"""
_TOTPS = """
CREATE TABLE totps (
  person_id uuid NOT NULL,
  sealed_secret bytea,
  last_step bigint NOT NULL,
  confirmed_at timestamp with time zone,
  sealed_new_secret bytea,
  started_at timestamp with time zone,
  CONSTRAINT pk_totps PRIMARY KEY (person_id),
  CONSTRAINT fk_totps_person_id FOREIGN KEY (person_id) REFERENCES people (id),
  CONSTRAINT ck_totps_last_step CHECK (last_step BETWEEN 0 AND 1100000000)
);
"""
_RECOVERY_CODES = """
CREATE TABLE recovery_codes (
  person_id uuid NOT NULL,
  code_hash bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  seal bytea NOT NULL,
  CONSTRAINT pk_recovery_codes PRIMARY KEY (person_id, code_hash),
  CONSTRAINT fk_recovery_codes_person_id FOREIGN KEY (person_id) REFERENCES people (id),
  CONSTRAINT ck_recovery_codes_code_hash CHECK (octet_length(code_hash) = 32)
);
"""
_CHALLENGES = """
CREATE TABLE challenges (
  id uuid NOT NULL,
  kind text NOT NULL,
  surface text NOT NULL,
  session_id uuid,
  challenge bytea NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_challenges PRIMARY KEY (id),
  CONSTRAINT ck_challenges_kind CHECK (kind IN ('sign_in', 'step_up', 'register'))
);
CREATE INDEX ix_challenges_expires_at ON challenges (expires_at);
"""
_SESSIONS = """
CREATE TABLE sessions (
  id uuid NOT NULL,
  person_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  surface text NOT NULL,
  way text NOT NULL,
  address text NOT NULL,
  user_agent text NOT NULL,
  started_at timestamp with time zone NOT NULL,
  last_seen_at timestamp with time zone NOT NULL,
  stepped_up_at timestamp with time zone,
  merchant_id uuid,
  ended_at timestamp with time zone,
  seal bytea NOT NULL,
  CONSTRAINT pk_sessions PRIMARY KEY (id),
  CONSTRAINT uq_sessions_token_hash UNIQUE (token_hash),
  CONSTRAINT fk_sessions_person_id FOREIGN KEY (person_id) REFERENCES people (id),
  CONSTRAINT ck_sessions_surface CHECK (surface IN ('desk', 'dashboard')),
  CONSTRAINT ck_sessions_way CHECK (way IN ('passkey', 'password', 'recovery_code', 'invitation')),
  CONSTRAINT ck_sessions_user_agent CHECK (char_length(user_agent) <= 256),
  CONSTRAINT ck_sessions_token_hash CHECK (octet_length(token_hash) = 32)
);
CREATE INDEX ix_sessions_last_seen_at ON sessions (last_seen_at);
CREATE INDEX ix_sessions_person_id ON sessions (person_id, id);
"""
_GUESSES = """
CREATE TABLE guesses (
  kind text NOT NULL,
  subject text NOT NULL,
  failures integer NOT NULL,
  last_at timestamp with time zone NOT NULL,
  delayed_until timestamp with time zone NOT NULL,
  CONSTRAINT pk_guesses PRIMARY KEY (kind, subject),
  CONSTRAINT ck_guesses_kind CHECK (kind IN ('network', 'person', 'step_up')),
  CONSTRAINT ck_guesses_failures CHECK (failures >= 0)
);
CREATE INDEX ix_guesses_last_at ON guesses (last_at);
"""
_SIGNING_KEYS = """
CREATE TABLE signing_keys (
  id uuid NOT NULL,
  public_key bytea NOT NULL,
  sealed_private_key bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  replaced_at timestamp with time zone,
  seal bytea NOT NULL,
  CONSTRAINT pk_signing_keys PRIMARY KEY (id),
  CONSTRAINT ck_signing_keys_public_key CHECK (octet_length(public_key) = 32)
);
"""
_MAILS = """
CREATE TABLE mails (
  invitation_id uuid NOT NULL,
  sealed_link bytea NOT NULL,
  attempts integer NOT NULL,
  due_at timestamp with time zone NOT NULL,
  last_error text NOT NULL,
  CONSTRAINT pk_mails PRIMARY KEY (invitation_id),
  CONSTRAINT fk_mails_invitation_id FOREIGN KEY (invitation_id) REFERENCES invitations (id)
);
CREATE INDEX ix_mails_due_at ON mails (due_at);
"""
_NOTICES = """
CREATE TABLE notices (
  id uuid NOT NULL,
  person_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  network text NOT NULL,
  address text NOT NULL,
  added_by text NOT NULL,
  usable_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone NOT NULL,
  attempts integer NOT NULL,
  due_at timestamp with time zone NOT NULL,
  last_error text NOT NULL,
  seal bytea NOT NULL,
  CONSTRAINT pk_notices PRIMARY KEY (id, person_id)
);
CREATE INDEX ix_notices_due_at ON notices (due_at);
"""
_OWNERS = """
CREATE TABLE owners (
  id uuid NOT NULL,
  email text NOT NULL,
  blocked_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_owners PRIMARY KEY (id),
  CONSTRAINT uq_owners_email UNIQUE (email),
  CONSTRAINT ck_owners_email CHECK (email = lower(email COLLATE "C") AND char_length(email) <= 254)
);
CREATE INDEX ix_owners_blocked ON owners (id) WHERE blocked_at IS NOT NULL;
"""
_LOGOS = """
CREATE TABLE logos (
  digest text NOT NULL,
  content_type text NOT NULL,
  content bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  kept_for uuid,
  CONSTRAINT pk_logos PRIMARY KEY (digest),
  CONSTRAINT ck_logos_digest CHECK (digest = encode(sha256(content), 'hex')),
  CONSTRAINT ck_logos_content_type CHECK (content_type IN ('image/jpeg', 'image/png', 'image/webp')),
  CONSTRAINT ck_logos_content CHECK (octet_length(content) BETWEEN 1 AND 32768)
);
CREATE INDEX ix_logos_kept_for ON logos (kept_for, created_at) WHERE kept_for IS NOT NULL;
"""
_MERCHANTS = """
CREATE TABLE merchants (
  id uuid NOT NULL,
  owner_id uuid NOT NULL,
  name text NOT NULL,
  activated_at timestamp with time zone,
  banned_at timestamp with time zone,
  category_code text,
  client_share numeric(7, 6) NOT NULL,
  callback_url text,
  success_url text,
  fail_url text,
  allowed_currencies text[] DEFAULT '{}' NOT NULL,
  allowed_methods text[] DEFAULT '{}' NOT NULL,
  created_at timestamp with time zone NOT NULL,
  colour text,
  frame_origins text[] DEFAULT '{}' NOT NULL,
  logo text,
  late_money text DEFAULT 'ask_credit' NOT NULL,
  CONSTRAINT pk_merchants PRIMARY KEY (id),
  CONSTRAINT fk_merchants_owner_id FOREIGN KEY (owner_id) REFERENCES owners (id),
  CONSTRAINT fk_merchants_logo FOREIGN KEY (logo) REFERENCES logos (digest),
  CONSTRAINT ck_merchants_name CHECK (char_length(name) BETWEEN 1 AND 128),
  CONSTRAINT ck_merchants_client_share CHECK (client_share BETWEEN 0 AND 1),
  CONSTRAINT ck_merchants_callback_url CHECK (char_length(callback_url) <= 2048),
  CONSTRAINT ck_merchants_success_url CHECK (char_length(success_url) <= 2048),
  CONSTRAINT ck_merchants_fail_url CHECK (char_length(fail_url) <= 2048),
  CONSTRAINT ck_merchants_colour CHECK (colour ~ '^#[0-9a-f]{6}$'),
  CONSTRAINT ck_merchants_late_money CHECK (late_money IN ('credit', 'return', 'ask_credit', 'ask_return'))
);
CREATE INDEX ix_merchants_owner_id ON merchants (owner_id);
CREATE INDEX ix_merchants_words ON merchants USING gin (to_tsvector('simple'::regconfig, name));
CREATE INDEX ix_merchants_banned ON merchants (id) WHERE banned_at IS NOT NULL;
CREATE INDEX ix_merchants_inactive ON merchants (id) WHERE activated_at IS NULL AND banned_at IS NULL;
CREATE INDEX ix_merchants_category_code ON merchants (category_code, id);
CREATE INDEX ix_merchants_created_at ON merchants (created_at);
"""
_CATEGORIES = """
CREATE TABLE categories (
  code text NOT NULL,
  commission numeric(7, 6) NOT NULL,
  refunds_return_commission boolean DEFAULT false NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_categories PRIMARY KEY (code),
  CONSTRAINT ck_categories_code CHECK (code ~ '^[a-z0-9_-]{1,64}$'),
  CONSTRAINT ck_categories_commission CHECK (commission BETWEEN 0 AND 1)
);
"""
_API_KEYS = """
CREATE TABLE api_keys (
  id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  name text NOT NULL,
  hint text NOT NULL,
  key_hash bytea NOT NULL,
  sealed_secret bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  deactivated_at timestamp with time zone,
  replaced_by uuid,
  last_used_at timestamp with time zone,
  scopes text[] DEFAULT '{}' NOT NULL,
  seal bytea,
  CONSTRAINT pk_api_keys PRIMARY KEY (id),
  CONSTRAINT uq_api_keys_key_hash UNIQUE (key_hash),
  CONSTRAINT fk_api_keys_merchant_id FOREIGN KEY (merchant_id) REFERENCES merchants (id),
  CONSTRAINT ck_api_keys_key_hash CHECK (octet_length(key_hash) = 32),
  CONSTRAINT ck_api_keys_name CHECK (char_length(name) <= 64)
);
CREATE INDEX ix_api_keys_merchant_id ON api_keys (merchant_id, id);
"""
_LOOKUP_KEY = """
CREATE TABLE lookup_key (
  id smallint NOT NULL,
  sealed bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_lookup_key PRIMARY KEY (id),
  CONSTRAINT ck_lookup_key_only_one CHECK (id = 1)
);
"""


def upgrade() -> None:
    for table in (
        _PEOPLE,
        _MEMBERSHIPS,
        _INVITATIONS,
        _PASSKEYS,
        _TOTPS,
        _RECOVERY_CODES,
        _CHALLENGES,
        _SESSIONS,
        _GUESSES,
        _SIGNING_KEYS,
        _MAILS,
        _NOTICES,
        _OWNERS,
        _LOGOS,
        _MERCHANTS,
        _CATEGORIES,
        _API_KEYS,
        _LOOKUP_KEY,
    ):
        op.execute(table)
    acts.make_acts()
    approvals.make_approvals()
    guards.bound_values()
