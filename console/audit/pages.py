"""The list of acts with its filters in the address, and the same as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from console.calls import answers_of
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.ui.filters import DAYS, Merchant, Text
from console.ui.values import iso, short
from console.words.acts import author_of, done
from fiatgate.audit.v1 import audit_pb2 as pb
from kit.base.ids import parse_id
from kit.rpc.errors import invalid


class AuditPage(ListPage):
    """/audit and /audit.csv: the acts of all services, newest first."""

    link = "/audit"
    template = "audit"
    csv_name = "acts"
    columns = (
        "id",
        "at",
        "service",
        "author_kind",
        "author",
        "on_behalf_of",
        "surface",
        "act",
        "object",
        "merchant_id",
        "changes",
        "note",
        "refused",
        "session_id",
        "request_id",
    )
    filters = (
        Text("author", "Author"),
        Text("act", "Act"),
        Text("object", "Object"),
        Merchant(),
        *DAYS,
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        if asked.after and parse_id(asked.after) is None:
            raise invalid("VALIDATION_ERROR", "this page does not exist", field="after")
        request = pb.ListActsRequest(
            author=asked["author"],
            act=asked["act"],
            object=asked["object"],
            merchant_id=asked["merchant"],
            after_act_id=asked.after,
            limit=asked.limit,
        )
        asked.set_days(request)
        answers, away = await answers_of({name: of.ListActs(request) for name, of in self.deps.audit.items()})
        # The ids of acts are UUIDv7: their order is that of time, and each service continues after the last one.
        acts = sorted(
            (act for answer in answers for act in answer.acts), key=lambda act: act.act_id, reverse=True
        )
        names = await self.names(*(act.merchant_id for act in acts[: asked.limit]))
        return asked.found(
            acts[: asked.limit],
            after=lambda act: act.act_id,
            away=away,
            names=names,
            sentence=_sentence,
            author_of=author_of,
        )

    def cells(self, row: pb.Act, found: Found) -> Sequence[str]:
        changes = "; ".join(f"{each.field}: {each.before} -> {each.after}" for each in row.changes)
        return (
            row.act_id,
            iso(row.at),
            row.service,
            row.actor.kind,
            row.actor.name,
            row.actor.on_behalf_of,
            row.actor.surface,
            row.act,
            row.object,
            row.merchant_id,
            changes,
            row.note,
            row.refused,
            row.actor.session_id,
            row.request_id,
        )


def _sentence(act: pb.Act) -> str:
    """Returns the act as the end of a sentence that begins with its author: "confirmed deal 0197…"."""
    kind, _, id = act.object.partition(":")
    return done(act, f"{kind.replace('-', ' ').replace('_', ' ')} {short(id)}")
