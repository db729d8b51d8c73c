"""Only the first fact of an invoice is kept: when it is announced again, the fact has another id"""

from alembic import op

from kit.db.migrations import guards

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# A fact names the event that it is about. Announced again it names the same event, under a new id of the outbox. A copy
# under that id would never be read.
KEEP_FACTS = """
CREATE OR REPLACE TRIGGER outbox_facts_are_kept AFTER INSERT ON outbox
  FOR EACH ROW
  WHEN (NEW.signature IS NOT NULL AND position(convert_to(NEW.id::text, 'UTF8') IN NEW.payload) > 0)
  EXECUTE FUNCTION keep_fact()
"""


def upgrade() -> None:
    with guards.each_by_itself():
        op.execute(KEEP_FACTS)
