"""Signed facts that stay: an invoice is announced again only as it once was"""

from alembic import op

from kit.db.migrations import guards

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Stored under the id of the event. Several rows may have one id: a row that an attacker adds can't block the true one.
FACTS = """
CREATE TABLE IF NOT EXISTS facts (
  event_id uuid NOT NULL,
  signature text NOT NULL,
  payload bytea NOT NULL,
  CONSTRAINT pk_facts PRIMARY KEY (event_id, signature)
)
"""

# `migrate` grants the rights on new tables last, and processes finish invoices meanwhile: so it runs as the owner.
KEEP_FACT = """
CREATE OR REPLACE FUNCTION keep_fact() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  INSERT INTO facts (event_id, signature, payload) VALUES (NEW.id, NEW.signature, NEW.payload) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$
"""

# The outbox deletes its facts after some days. A trigger keeps them, also those of processes of the version before.
KEEP_FACTS = """
CREATE OR REPLACE TRIGGER outbox_facts_are_kept AFTER INSERT ON outbox
  FOR EACH ROW WHEN (NEW.signature IS NOT NULL) EXECUTE FUNCTION keep_fact()
"""

# An invoice that finishes later must have a signed fact. If there are invoices already, processes of a version that did
# not sign may finish some for another day.
SINCE = """
INSERT INTO records
SELECT 'recorded', 'fact', 1,
       CASE WHEN EXISTS (SELECT FROM invoices) THEN clock_timestamp() + interval '1 day' ELSE '-infinity' END, '{}'
ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    with guards.each_by_itself():
        op.execute(FACTS)
    guards.append_only("facts")
    with guards.each_by_itself():
        op.execute(SINCE)
        op.execute(KEEP_FACT)
        op.execute(KEEP_FACTS)
