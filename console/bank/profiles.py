"""CSV files of banks: the page that describes one, with a preview, and the profiles that were saved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import falcon.asgi

from console.bank.csv_form import (
    COLUMNS,
    DAYS,
    DELIMITERS,
    ENCODINGS,
    NEW,
    TEXTS,
    columns_of,
    header_of,
    profile_of,
)
from console.exchange import Request
from console.page import Page, leave_for
from console.ui.pages import only_for
from fiatgate.bank.v1 import bank_pb2 as pb
from kit.rpc.errors import Refused

NAME_MOST: Final = 64


class ProfilesPage(Page):
    """/bank/profiles: saved profiles by name, each with a button that deletes it."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        found = await self.deps.bank.ListCsvProfiles(pb.ListCsvProfilesRequest())
        self.show(req, resp, "bank-profiles", profiles=found.profiles)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        name = (await self.form(req)).line("name", most=NAME_MOST)
        await self.deps.bank.DeleteCsvProfile(pb.DeleteCsvProfileRequest(name=name))
        leave_for(resp, "/bank/profiles", notice="csv-profile-deleted")


class CsvPage(Page):
    """/bank/files/{import_id}/csv: the first rows of a file, the form of a new profile, and the lines by one."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, import_id: str) -> None:
        only_for(req, frozenset({"desk", "admin"}))
        found, typed = await self._rows(import_id, {})
        await self._show(req, resp, import_id, found, typed=typed)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response, import_id: str) -> None:
        """Shows the lines by a saved profile or by the form, saves that, and imports the file."""
        form = await self.form(req)
        act, name = form.text("act"), form.line("profile_name", most=NAME_MOST)
        given = {each: form.line(each, most=most) for each, most in TEXTS.items()}
        given["delimiter"] = form.text("delimiter")  # a tab is no text of a line
        found, typed = await self._rows(import_id, {} if name else given)
        show = partial(self._show, req, resp, import_id, found, typed=typed, name=name)
        try:
            profile = "" if name else profile_of(typed, [row.cells for row in found.rows])
            if act == "save":
                request = pb.SaveCsvProfileRequest(name=typed["name"], profile=profile)
                name = (await self.deps.bank.SaveCsvProfile(request)).profile.name
            if act in ("save", "import"):
                again = pb.ImportFileRequest(import_id=import_id, profile_name=name)
                kept = (await self.deps.bank.ImportFile(again)).file
                leave_for(resp, f"/bank/files/{kept.import_id}", notice=f"csv-{act}")
                return
            asked = pb.GetPreviewRequest(import_id=import_id, profile=profile, profile_name=name)
            read = await self.deps.bank.GetPreview(asked)
            found.lines.extend(read.lines)
            found.problem = found.problem or read.problem
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            await show(refused=refused)
        else:
            await show()

    async def _rows(
        self, import_id: str, typed: Mapping[str, str]
    ) -> tuple[pb.GetPreviewResponse, Mapping[str, str]]:
        """Returns the first rows by the form, and the form; of an empty one that which is guessed."""
        form = {name: typed.get(name, "") for name in ("encoding", "delimiter")}
        found = await self.deps.bank.GetPreview(pb.GetPreviewRequest(import_id=import_id, **form))
        guessed = {"encoding": found.encoding, "delimiter": found.delimiter}
        return found, typed or NEW | guessed | {"header": header_of([row.cells for row in found.rows])}

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        import_id: str,
        found: pb.GetPreviewResponse,
        *,
        typed: Mapping[str, str],
        name: str = "",
        refused: Refused | None = None,
    ) -> None:
        file = (await self.deps.bank.GetImport(pb.GetImportRequest(import_id=import_id))).file
        saved = (await self.deps.bank.ListCsvProfiles(pb.ListCsvProfilesRequest())).profiles
        self.show(
            req,
            resp,
            "bank-csv",
            refused=refused,
            file=file,
            found=found,
            saved=[each.name for each in saved],
            name=name,
            typed=typed,
            labels=COLUMNS,
            columns=columns_of([row.cells for row in found.rows], typed["header"]),
            encodings=ENCODINGS,
            delimiters=DELIMITERS,
            days=DAYS,
        )
