"""Index of the history of deals by time, for the proof of the sums of days"""

from kit.db.migrations.steps import index_beside_traffic

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic(
        "ix_deal_transitions_at", "deal_transitions", ["at"], using="brin", options={"autosummarize": "on"}
    )
