"""The search box of the dashboard: the merchant's own things, by what its members may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from console.finding.pages import FindPage
from console.ui.values import iso, queried
from fiatgate.find.v1 import find_pb2 as pb

LISTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "invoice amount": ("/invoices", ("amount_from", "amount_to")),
    "invoice customer": ("/invoices", ("customer",)),
    "withdrawal address": ("/withdrawals", ("address",)),
}
"""The list that goes on where a search by this kind and field stops, and the fields of its filter."""


class OwnFindPage(FindPage):
    """/find of the dashboard. Each service is searched for the roles that may read its things."""

    services = ("invoices", "webhooks", "withdrawals")
    entries: ClassVar[Mapping[str, str]] = {"withdrawals": "/withdrawals"}
    paths: ClassVar[Mapping[str, str]] = {
        "invoice": "/invoices/{id}",
        "webhook": "/webhooks/{id}",
        "withdrawal": "/withdrawals/{id}",
        "address": "/addresses",
        "refund": "/refunds/{id}",
    }
    template = "own-finding"
    columns = ("kind", "id", "field", "value", "status", "amount", "currency", "order", "created_at")

    def list_of(self, cut: str, text: str) -> str:
        path, fields = LISTS.get(cut, ("", ()))
        return queried(path, dict.fromkeys(fields, text)) if path else ""

    def cells(self, found: pb.Found, names: Mapping[str, str]) -> Sequence[str]:
        facts = found.facts
        return (
            *(found.kind, found.id, found.field, found.value, found.status),
            *(facts.get("amount", ""), facts.get("currency_code", "")),
            *(facts.get("external_id", ""), iso(found.created_at)),
        )
