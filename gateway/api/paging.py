"""Pages of lists by number (docs/api.md#list-invoices), and by the last item before (docs/api.md#cursors)."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gateway.json.problems import FieldFault, InvalidFields
from gateway.json.query import Query
from kit.rpc.errors import Refused
from kit.rpc.values import PAGE_MOST_ROWS

PER_PAGE_DEFAULT: Final = 20
# No table has rows beyond this page, and its first row's number still fits PostgreSQL's bigint.
LAST_PAGE_ASKED: Final = 2**40

NO_SUCH_ITEM: Final = frozenset(
    {"CORRECTION_NOT_FOUND", "INVOICE_NOT_FOUND", "VALIDATION_ERROR", "WITHDRAWAL_NOT_FOUND"}
)
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Page:
    """after: the id of the last item before the first page; empty: none"""

    number: int
    per_page: int
    after: str = ""

    @property
    def asked(self) -> int:
        """The page number to send to services. A larger number is cut, because that page is past the last one too."""
        return min(self.number, LAST_PAGE_ASKED)


def page_from(query: Query) -> Page:
    """Reads `page`, `per_page` and `after`; `query.check()` raises their faults."""
    return Page(
        query.integer("page", default=1, least=1),
        query.integer("per_page", default=PER_PAGE_DEFAULT, least=1, most=PAGE_MOST_ROWS),
        query.id("after"),
    )


def page_to_json(page: Page, total: int, data: Sequence[Any], *, id_name: str) -> dict[str, Any]:
    """Returns the answer. With `after` in the query it has `next_after`, the member `id_name` of the last item."""
    more = total > page.number * page.per_page
    return {
        "successful": True,
        "page": page.number,
        "per_page": page.per_page,
        "total": total,
        "total_pages": -(-total // page.per_page),
        "data": data,
        **({"next_after": data[-1][id_name] if more else None} if page.after else {}),
    }


@contextmanager
def in_the_list(after: str) -> Iterator[None]:
    """Raises InvalidFields when `after` is given and the service has no such item in the list."""
    try:
        yield
    except Refused as refused:
        if after and refused.reason in NO_SUCH_ITEM:
            raise InvalidFields(FieldFault("after", "is no item of this list")) from None
        raise


@dataclass(frozen=True)
class Cursor:
    """after: the id of the last item before the page; empty: the page is the first"""

    after: str
    per_page: int

    async def page(
        self,
        list_rows: Callable[[int], Awaitable[Sequence[_Row]]],
        id_of: Callable[[_Row], str],
        to_json: Callable[[_Row], dict[str, Any]],
    ) -> dict[str, Any]:
        """Returns the answer. `list_rows` is called with the number of rows to return. Raises InvalidFields for an
        `after` that is no item of the list.
        """
        with in_the_list(self.after):
            rows = await list_rows(self.per_page + 1)
        page = rows[: self.per_page]
        more = len(rows) > self.per_page
        return {
            "successful": True,
            "data": [to_json(row) for row in page],
            "next_after": id_of(page[-1]) if more else None,
        }


def cursor_from(query: Query) -> Cursor:
    """Reads `after` and `per_page`; `query.check()` raises their faults."""
    return Cursor(
        query.id("after"), query.integer("per_page", default=PER_PAGE_DEFAULT, least=1, most=PAGE_MOST_ROWS)
    )
