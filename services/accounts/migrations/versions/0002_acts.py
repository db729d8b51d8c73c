"""Acts: who changed what, their chain, and the heads of other services' chains"""

from kit.db.migrations import acts

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    acts.make_acts()
