"""fiatgate.find.v1.FindService: the search of operators and members, the same in every service."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import grpc
from sqlalchemy import Connection

from fiatgate.find.v1 import find_pb2 as pb
from fiatgate.find.v1 import find_pb2_grpc
from kit.base import actors
from kit.base.ids import BEGINNING_DIGITS, ids_beginning_with
from kit.base.proto import most_of, timestamp_from
from kit.db.database import Database, bound_statements
from kit.db.finding import COMPLETED_MOST, Found, Ids, OwnSearch, Part, Search, completed
from kit.rpc import values

# ruff: noqa: N802  methods are named by the proto

FOUND_MOST_ROWS: Final = 100
STATEMENT_SECONDS: Final = 2
"""The longest that one statement of a search may take: others wait for its thread."""


@dataclass(frozen=True)
class ForAdmins:
    """The kinds and searches for the role `admin` and the command line alone: for others they find nothing."""

    ids: Ids = field(default_factory=dict)
    searches: Sequence[Search] = ()


class FindServicer(find_pb2_grpc.FindServiceServicer):
    def __init__(
        self,
        db: Database,
        ids: Ids,
        searches: Sequence[Search],
        own_searches: Sequence[OwnSearch],
        for_admins: ForAdmins,
    ) -> None:
        self._db = db
        self._ids = ids
        self._searches = searches
        self._own_searches = own_searches
        self._for_admins = for_admins

    def CompleteId(
        self, request: pb.CompleteIdRequest, context: grpc.ServicerContext
    ) -> pb.CompleteIdResponse:
        ids = {**self._ids, **(self._for_admins.ids if _is_admin() else {})}
        column = ids.get(request.kind)
        if column is None:
            raise values.invalid("kind", f"Expected one of {', '.join(ids)}")
        bounds = ids_beginning_with(request.beginning)
        if bounds is None:
            raise values.invalid(
                "beginning", f"Expected {BEGINNING_DIGITS} or more hexadecimal digits of an id"
            )
        with self._db.autocommit() as connection:
            found = completed(connection, column, *bounds)
        return pb.CompleteIdResponse(
            ids=[str(each) for each in found[:COMPLETED_MOST]], more=len(found) > COMPLETED_MOST
        )

    def Find(self, request: pb.FindRequest, context: grpc.ServicerContext) -> pb.FindResponse:
        wanted = values.text("text", request.text.strip(), most=most_of(pb.FindRequest, "text"))
        limit = values.rows(request.limit, default=FOUND_MOST_ROWS, most=FOUND_MOST_ROWS)
        merchant_id = values.uuid("merchant_id", request.merchant_id) if request.merchant_id else None
        answer = pb.FindResponse()
        with self._db.transaction() as tx:
            bound_statements(tx, seconds=STATEMENT_SECONDS)
            for part in self._parts(tx.connection(), merchant_id, wanted, limit + 1):
                things = part.things
                answer.found.extend(_found_to_message(each) for each in things[:limit])
                if len(things) > limit:
                    answer.cut.append(f"{things[0].kind} {things[0].field}")
                elif part.may_have_more:
                    answer.cut.append(part.may_have_more)
        return answer

    def _parts(
        self, connection: Connection, merchant_id: UUID | None, wanted: str, limit: int
    ) -> Iterator[Part]:
        if merchant_id is None:
            searches = (*self._searches, *(self._for_admins.searches if _is_admin() else ()))
            yield from (Part(search(connection, wanted, limit)) for search in searches)
        else:
            yield from (search(connection, merchant_id, wanted, limit) for search in self._own_searches)


def _is_admin() -> bool:
    actor = actors.current()
    return actor.kind == "cli" or (actor.surface == "desk" and "admin" in actor.roles)


def _found_to_message(found: Found) -> pb.Found:
    return pb.Found(
        kind=found.kind,
        id=found.id,
        field=found.field,
        value=found.value,
        status=found.status,
        created_at=timestamp_from(found.created_at),
        facts=found.facts,
    )


def add_to(
    server: grpc.Server,
    db: Database,
    ids: Ids,
    searches: Sequence[Search],
    own_searches: Sequence[OwnSearch] = (),
    *,
    for_admins: ForAdmins = ForAdmins(),
) -> None:
    """Adds the service. `searches`, or of a merchant `own_searches`, are run one after the other for each text."""
    servicer = FindServicer(db, ids, searches, own_searches, for_admins)
    find_pb2_grpc.add_FindServiceServicer_to_server(servicer, server)
