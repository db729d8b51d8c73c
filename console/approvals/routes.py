"""The addresses of requests for a second person, and their entry of the navigation."""

from collections.abc import Mapping
from typing import Final

from console.approvals.pages import ApprovalPage, ApprovalsPage, EvidenceOf
from console.page import App
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/approvals",
        "Approvals",
        "what waits for a second person",
        reads(*READERS),
        count="approvals",
    ),
)


def add_to(app: App, deps: Deps, evidence: Mapping[str, EvidenceOf]) -> None:
    """Adds the addresses. `evidence` is by the act that is requested."""
    one = ApprovalPage(deps, evidence)
    ApprovalsPage(deps).add_to(app, "/approvals")
    app.add_route("/approvals/{service}/{approval_id}", one)
    app.add_route("/approvals/{service}/{approval_id}/approve", one, suffix="approve")
    app.add_route("/approvals/{service}/{approval_id}/reject", one, suffix="reject")
