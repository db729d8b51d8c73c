"""fiatgate.books.v1.BooksService: the verification of a service's own books, for `fiatgate verify`."""

from collections.abc import Sequence

import grpc

from fiatgate.books.v1 import books_pb2 as pb
from fiatgate.books.v1 import books_pb2_grpc
from kit.db import books
from kit.db.database import Database
from kit.rpc import values

# ruff: noqa: N802  methods are named by the proto


class BooksServicer(books_pb2_grpc.BooksServiceServicer):
    def __init__(self, db: Database, parts: Sequence[books.Part]) -> None:
        self._db = db
        self._parts = {part.name: part for part in parts}

    def ListParts(self, request: pb.ListPartsRequest, context: grpc.ServicerContext) -> pb.ListPartsResponse:
        return pb.ListPartsResponse(parts=list(self._parts))

    def CheckPage(self, request: pb.CheckPageRequest, context: grpc.ServicerContext) -> pb.CheckPageResponse:
        part = self._parts.get(request.part)
        if part is None:
            raise values.invalid("part", f"Expected one of {', '.join(self._parts)}")
        if request.after and not books.is_key(part, request.after):
            raise values.invalid("after", f"Expected a {part.key_type}")
        limit = values.rows(request.limit, default=values.LIST_MOST_ROWS)
        page = books.check_page(self._db, part, after=request.after, limit=limit)
        return pb.CheckPageResponse(
            checked=page.checked,
            problems=[
                pb.BookProblem(subject=each.subject, field=each.field, found=each.found, due=each.due)
                for each in page.problems
            ],
            unreadable=page.unreadable,
            last=page.last,
            more=page.more,
        )


def add_to(server: grpc.Server, db: Database, parts: Sequence[books.Part]) -> None:
    books_pb2_grpc.add_BooksServiceServicer_to_server(BooksServicer(db, parts), server)
