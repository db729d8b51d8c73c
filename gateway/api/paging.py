"""Pages of the two lists, invoices and withdrawals (docs/api.md#list-invoices)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.json.query import Query
from kit.rpc.values import PAGE_MOST_ROWS

PER_PAGE_DEFAULT: Final = 20
# No table has rows beyond this page, and its first row's number still fits PostgreSQL's bigint.
LAST_PAGE_ASKED: Final = 2**40


@dataclass(frozen=True)
class Page:
    number: int
    per_page: int

    @property
    def asked(self) -> int:
        """The page number to send to services. A larger number is cut, because that page is past the last one too."""
        return min(self.number, LAST_PAGE_ASKED)


def page_from(query: Query) -> Page:
    """Reads `page` and `per_page`; `query.check()` raises their faults."""
    return Page(
        query.integer("page", default=1, least=1),
        query.integer("per_page", default=PER_PAGE_DEFAULT, least=1, most=PAGE_MOST_ROWS),
    )


def page_to_json(page: Page, total: int, data: Sequence[Any]) -> dict[str, Any]:
    return {
        "successful": True,
        "page": page.number,
        "per_page": page.per_page,
        "total": total,
        "total_pages": -(-total // page.per_page),
        "data": data,
    }
