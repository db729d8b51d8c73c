"""The step that makes the tables of acts, for the migrations of every service."""

from typing import Final

from alembic import op

from kit.db.migrations import guards

_ACTS = """
CREATE TABLE acts (
  id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  actor_kind text NOT NULL,
  actor_name text COLLATE "C" NOT NULL,
  person_id uuid,
  session_id uuid,
  surface text NOT NULL,
  on_behalf_of text COLLATE "C" NOT NULL,
  act text COLLATE "C" NOT NULL,
  object text COLLATE "C" NOT NULL,
  merchant_id uuid,
  changes jsonb NOT NULL,
  note text NOT NULL,
  request_id text NOT NULL,
  refused text NOT NULL,
  seal bytea NOT NULL,
  CONSTRAINT pk_acts PRIMARY KEY (id),
  CONSTRAINT ck_acts_changes CHECK (
    jsonb_typeof(changes) = 'array' AND octet_length(CAST(changes AS text)) <= 65536
    AND NOT jsonb_path_exists(changes, 'strict $[*] ? (
      !(@.type() == "array" && @.size() == 3 && !exists (@[*] ? (@.type() != "string")))
    )')
  ),
  CONSTRAINT ck_acts_texts CHECK (
    octet_length(actor_name || on_behalf_of || surface || act || object || note || request_id || refused) <= 16384
  ),
  CONSTRAINT ck_acts_seal CHECK (octet_length(seal) = 32)
)
"""
_INDEXES = (
    "ix_acts_actor_name ON acts (actor_name, id)",
    "ix_acts_on_behalf_of ON acts (on_behalf_of, id) WHERE on_behalf_of <> ''",
    "ix_acts_person_id ON acts (person_id, id) WHERE person_id IS NOT NULL",
    "ix_acts_act ON acts (act, id)",
    "ix_acts_object ON acts (object, id)",
    "ix_acts_merchant_id ON acts (merchant_id, id) WHERE merchant_id IS NOT NULL",
)
_CHAIN = """
CREATE TABLE act_chain (
  number bigint NOT NULL,
  act_id uuid NOT NULL,
  hash bytea NOT NULL,
  chained_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_act_chain PRIMARY KEY (number),
  CONSTRAINT uq_act_chain_act_id UNIQUE (act_id),
  CONSTRAINT ck_act_chain_number CHECK (number > 0),
  CONSTRAINT ck_act_chain_hash CHECK (octet_length(hash) = 32)
)
"""
# A later number would end the chain: it could not go on from 2^63 - 1.
_FOLLOWS = """
CREATE FUNCTION act_chain_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM public.act_chain) THEN
    RAISE EXCEPTION 'entry % does not follow the end of the chain', NEW.number USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$
"""
_EACH_FOLLOWS = """
CREATE TRIGGER act_chain_follows BEFORE INSERT ON act_chain
FOR EACH ROW EXECUTE FUNCTION act_chain_follows()
"""
_HEADS = """
CREATE TABLE act_heads (
  number bigint GENERATED ALWAYS AS IDENTITY,
  service text NOT NULL,
  count bigint NOT NULL,
  hash bytea NOT NULL,
  at timestamp with time zone NOT NULL,
  seal bytea NOT NULL,
  CONSTRAINT pk_act_heads PRIMARY KEY (number),
  CONSTRAINT ck_act_heads_count CHECK (count >= 0),
  CONSTRAINT ck_act_heads_hash CHECK (octet_length(hash) = 32),
  CONSTRAINT ck_act_heads_seal CHECK (octet_length(seal) = 32)
);
CREATE INDEX ix_act_heads_service ON act_heads (service, number);
"""


TABLES: Final = (
    _ACTS,
    _CHAIN,
    _FOLLOWS,
    _EACH_FOLLOWS,
    _HEADS,
    *(f"CREATE INDEX {each}" for each in _INDEXES),
)


def make_acts() -> None:
    """Makes the tables. Their rows are only added: UPDATE, DELETE and TRUNCATE are refused."""
    guards.make_refusal()
    for statement in TABLES:
        op.execute(statement)
    for table in ("acts", "act_chain", "act_heads"):
        guards.append_only(table)
