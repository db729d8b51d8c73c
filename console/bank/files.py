"""Files of banks: the list with the form, and one file with its statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.ui.values import iso, word
from demo import bank as demo_bank
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2
from kit.base.clock import SystemClock
from kit.rpc.errors import Refused, invalid

FILE_MAX_BYTES: Final = 8 * 2**20


class FilesPage(ListPage):
    """/bank/files and /bank/files.csv: imports, newest first; a form takes a file."""

    link = "/bank"
    template = "bank-files"
    csv_name = "bank-files"
    columns = ("import_id", "imported_at", "file_name", "format", "state", "lines", "new_lines", "problem")

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListImportsRequest(after_import_id=asked.after, limit=asked.limit)
        found = (await self.deps.bank.ListImports(request)).imports
        return asked.found(found, after=lambda row: row.import_id)

    def cells(self, row: pb.Import, found: Found) -> Sequence[str]:
        counts = (str(row.lines), str(row.new_lines), row.problem)
        return (row.import_id, iso(row.imported_at), row.file_name, row.format, word(row, "state"), *counts)

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        saved = (await self.deps.bank.ListCsvProfiles(pb.ListCsvProfilesRequest())).profiles
        return {"saved": [each.name for each in saved]}

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Keeps the file of the form, and shows its page; of a CSV file without a profile the one that describes it."""
        try:
            form = await self.form(req, file_field="file", file_max_bytes=FILE_MAX_BYTES)
            name = form.line("file_name", most=200) or "statement"
            profile = form.line("profile_name", most=64)
            request = pb.ImportFileRequest(content=form.file or b"", file_name=name, profile_name=profile)
            kept = (await self.deps.bank.ImportFile(request)).file
        except Refused as refused:
            if refused.reason not in ("VALIDATION_ERROR", "PAYLOAD_TOO_LARGE", "BANK_FILE_REFUSED"):
                raise
            field = "profile_name" if refused.metadata.get("field") == "profile_name" else "file"
            await self.answer(req, resp, refused=invalid("VALIDATION_ERROR", refused.message, field=field))
        else:
            lacks_profile = not profile and kept.format == "csv" and kept.state == pb.IMPORT_STATE_REFUSED
            leave_for(resp, f"/bank/files/{kept.import_id}{'/csv' if lacks_profile else ''}")


class DemoStatementPage(Page):
    """/bank/demo-statement: the invented bank of a trial sends a file with transfers for the newest deals."""

    link = "/bank"

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self.form(req)
        asked = invoices_pb2.ListDealsRequest(limit=demo_bank.DEALS_MOST)
        deals = (await self.deps.deals.ListDeals(asked)).deals
        requisites = await self.deps.deals.ListRequisites(invoices_pb2.ListRequisitesRequest())
        now = SystemClock().now()
        content = demo_bank.statement(deals, requisites.requisites, now=now)
        request = pb.ImportFileRequest(content=content, file_name=f"demo-{now.date()}.xml")
        if deals:
            kept = (await self.deps.bank.ImportFile(request)).file
            leave_for(resp, f"/bank/files/{kept.import_id}")
        else:
            leave_for(resp, "/bank", problem="no_deals")


class ImportPage(Page):
    """/bank/files/{import_id}: a file with its statements."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, import_id: str) -> None:
        found = await self.deps.bank.GetImport(pb.GetImportRequest(import_id=import_id))
        self.show(req, resp, "bank-file", file=found.file)

    on_head = on_get
