"""Requests for a second pair of eyes"""

from kit.db.migrations.approvals import make_approvals

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    make_approvals()
