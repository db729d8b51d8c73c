"""The lists of corrections, and of merchants that owe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.exchange import Request
from console.list_page import ROWS_PER_CALL, Asked, Found, ListPage
from console.ui.filters import DAYS, SINCE, UNTIL, Choice, Merchant, Text
from console.ui.values import iso, word
from console.words.corrections import KINDS
from fiatgate.withdrawals.v1 import corrections_pb2 as pb

_ANY: Final = {"": "Any"}


class CorrectionsPage(ListPage):
    """/corrections and /corrections.csv: newest first."""

    link = "/corrections"
    template = "corrections"
    csv_name = "corrections"
    columns = (
        *("correction_id", "created_at", "kind", "merchant_id", "merchant", "invoice_id", "case_number"),
        *("amount", "owed", "received_amount", "currency_code", "conversion_rate", "reason", "evidence"),
    )
    filters = (
        Merchant(),
        Choice("kind", "Kind", _ANY | dict(KINDS)),
        Text("invoice", "Invoice", hint="id", of="invoice_id"),
        *DAYS,
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListCorrectionsRequest(
            merchant_id=asked["merchant"],
            invoice_id=asked["invoice"],
            after_correction_id=asked.after,
            limit=asked.limit,
        )
        if asked["kind"]:
            request.kind = kind_of(asked["kind"])
        if begin := SINCE.begin(asked["since"]):
            request.created_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.created_before.FromDatetime(end)
        found = (await self.deps.corrections.ListCorrections(request)).corrections
        names = await self.names(*(each.merchant_id for each in found))
        return asked.found(found, after=lambda row: row.correction_id, names=names)

    def cells(self, row: pb.Correction, found: Found) -> Sequence[str]:
        return (
            row.correction_id,
            iso(row.created_at),
            word(row, "kind"),
            row.merchant_id,
            found.values["names"].get(row.merchant_id, ""),
            row.invoice_id,
            str(row.case_number or ""),
            row.amount,
            row.owed,
            row.received_amount,
            row.currency_code,
            row.conversion_rate,
            row.reason,
            row.evidence,
        )


class DebtsPage(ListPage):
    """/debts and /debts.csv: the largest debt first."""

    link = "/debts"
    template = "debts"
    csv_name = "debts"
    columns = ("merchant_id", "merchant", "owed", "since")

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListDebtsRequest(limit=ROWS_PER_CALL)
        debts = (await self.deps.corrections.ListDebts(request)).debts
        return Found(debts, values={"names": await self.names(*(each.merchant_id for each in debts))})

    def cells(self, row: pb.Debt, found: Found) -> Sequence[str]:
        name = found.values["names"].get(row.merchant_id, "")
        return (row.merchant_id, name, row.owed, iso(row.since))


def kind_of(word: str) -> pb.CorrectionKind.ValueType:
    """Returns the number of the kind; UNSPECIFIED for another word."""
    return (
        pb.CorrectionKind.Value(f"CORRECTION_KIND_{word.upper()}")
        if word in KINDS
        else pb.CorrectionKind.ValueType(0)
    )
