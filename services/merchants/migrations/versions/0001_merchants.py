"""Owners, merchants with their logos, categories, API keys, and the key under which API keys are looked up"""

from alembic import op

from kit.db.migrations import acts, guards

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

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
  CONSTRAINT pk_merchants PRIMARY KEY (id),
  CONSTRAINT fk_merchants_owner_id FOREIGN KEY (owner_id) REFERENCES owners (id),
  CONSTRAINT fk_merchants_logo FOREIGN KEY (logo) REFERENCES logos (digest),
  CONSTRAINT ck_merchants_name CHECK (char_length(name) BETWEEN 1 AND 128),
  CONSTRAINT ck_merchants_client_share CHECK (client_share BETWEEN 0 AND 1),
  CONSTRAINT ck_merchants_callback_url CHECK (char_length(callback_url) <= 2048),
  CONSTRAINT ck_merchants_success_url CHECK (char_length(success_url) <= 2048),
  CONSTRAINT ck_merchants_fail_url CHECK (char_length(fail_url) <= 2048),
  CONSTRAINT ck_merchants_colour CHECK (colour ~ '^#[0-9a-f]{6}$')
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
    for table in (_OWNERS, _LOGOS, _MERCHANTS, _CATEGORIES, _API_KEYS, _LOOKUP_KEY):
        op.execute(table)
    acts.make_acts()
    guards.bound_values()
