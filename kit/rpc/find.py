"""fiatgate.find.v1.FindService: the operator's search, the same in every service."""

from collections.abc import Sequence
from typing import Final

import grpc

from fiatgate.find.v1 import find_pb2 as pb
from fiatgate.find.v1 import find_pb2_grpc
from kit.base.ids import BEGINNING_DIGITS, ids_beginning_with
from kit.base.proto import most_of, timestamp_from
from kit.db.database import Database, bound_statements
from kit.db.finding import COMPLETED_MOST, Found, Ids, Search, completed
from kit.rpc import values
from kit.rpc.permissions import READERS, Permissions, staff

# ruff: noqa: N802  methods are named by the proto

FOUND_MOST_ROWS: Final = 100
STATEMENT_SECONDS: Final = 2
"""The longest that one statement of a search may take: others wait for its thread."""


PERMISSIONS: Final[Permissions] = {
    "FindService/CompleteId": staff(*READERS),
    "FindService/Find": staff(*READERS),
}


class FindServicer(find_pb2_grpc.FindServiceServicer):
    def __init__(self, db: Database, ids: Ids, searches: Sequence[Search]) -> None:
        self._db = db
        self._ids = ids
        self._searches = searches

    def CompleteId(
        self, request: pb.CompleteIdRequest, context: grpc.ServicerContext
    ) -> pb.CompleteIdResponse:
        column = self._ids.get(request.kind)
        if column is None:
            raise values.invalid("kind", f"Expected one of {', '.join(self._ids)}")
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
        answer = pb.FindResponse()
        with self._db.transaction() as tx:
            bound_statements(tx, seconds=STATEMENT_SECONDS)
            connection = tx.connection()
            for search in self._searches:
                found = search(connection, wanted, limit + 1)
                answer.found.extend(_found_to_message(each) for each in found[:limit])
                if len(found) > limit:
                    answer.cut.append(f"{found[0].kind} {found[0].field}")
        return answer


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


def add_to(server: grpc.Server, db: Database, ids: Ids, searches: Sequence[Search]) -> None:
    """Adds the service. `searches` are run one after the other for each text."""
    find_pb2_grpc.add_FindServiceServicer_to_server(FindServicer(db, ids, searches), server)
