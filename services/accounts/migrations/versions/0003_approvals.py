"""Requests for a second pair of eyes"""

from kit.db.migrations.approvals import make_approvals

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    make_approvals()
