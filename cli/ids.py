"""Ids that an operator types: whole, or their first characters.

The service that keeps the things completes a beginning. One that two things share is refused, so a command never does
its work on another thing than the one that was meant.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from cli import connection
from fiatgate.find.v1 import find_pb2 as pb
from kit.base.ids import ids_beginning_with, parse_id
from kit.rpc.errors import not_found

SERVICES: Final = {
    "merchant": "merchants",
    "key": "merchants",
    "invoice": "invoices",
    "deal": "invoices",
    "requisite": "invoices",
    "withdrawal": "withdrawals",
    "person": "accounts",
    "invitation": "accounts",
    "session": "accounts",
}
"""The service that keeps each kind of thing."""

SHOWN_MOST: Final = 10
"""The most things that an answer names."""

_UNKNOWN: Final = {kind: f"{kind.upper()}_NOT_FOUND" for kind in SERVICES} | {"key": "API_KEY_NOT_FOUND"}


class Ambiguous(Exception):
    """Two or more things have ids that begin like this."""

    def __init__(self, kind: str, beginning: str, ids: list[str], *, more: bool) -> None:
        many = f"{len(ids)} or more" if more else str(len(ids))
        super().__init__(f"{many} {kind}s have ids that begin with {beginning}: give more of it")
        self.ids = ids


def completed(kind: str, text: str) -> str:
    """Returns the id that begins with the text. A whole id, and a text that is no beginning, come back as they are: the
    service of the command answers them. Raises Ambiguous, and Refused when no id begins so.
    """
    text = text.strip()
    if parse_id(text) or ids_beginning_with(text) is None:
        return text
    answer = connection.find(SERVICES[kind]).CompleteId(pb.CompleteIdRequest(kind=kind, beginning=text))
    if not answer.ids:
        raise not_found(_UNKNOWN[kind], f"No {kind} has an id that begins with {text}")
    if len(answer.ids) > 1:
        raise Ambiguous(kind, text, list(answer.ids), more=answer.more)
    return answer.ids[0]


def parser_of(kind: str) -> Callable[[str], str]:
    """Returns the parser of an argument or option that is the id of such a thing."""

    def parse(text: str) -> str:
        return completed(kind, text)

    return parse


def _argument(kind: str, metavar: str) -> Any:
    return typer.Argument(
        metavar=metavar,
        parser=parser_of(kind),
        help=f"The {kind}'s id, or its first characters.",
        show_default=False,
    )


DealId = Annotated[str, _argument("deal", "ID")]
DealIds = Annotated[list[str], _argument("deal", "ID …")]
SomeDealIds = Annotated[list[str] | None, _argument("deal", "ID …")]
InvoiceId = Annotated[str, _argument("invoice", "INVOICE_ID")]
InvoiceIds = Annotated[list[str], _argument("invoice", "INVOICE_ID …")]
MerchantId = Annotated[str, _argument("merchant", "MERCHANT")]
MerchantIds = Annotated[list[str], _argument("merchant", "MERCHANT …")]
KeyIds = Annotated[list[str], _argument("key", "KEY_ID …")]
RequisiteId = Annotated[str, _argument("requisite", "ID")]
RequisiteIds = Annotated[list[str], _argument("requisite", "ID …")]
WithdrawalId = Annotated[str, _argument("withdrawal", "ID")]
PersonId = Annotated[
    str, typer.Argument(metavar="PERSON", parser=parser_of("person"), help="E-mail address, or id.")
]
InvitationId = Annotated[str, _argument("invitation", "ID")]
SessionId = Annotated[str, _argument("session", "ID")]
WithdrawalIds = Annotated[list[str], _argument("withdrawal", "ID …")]

OfMerchant = Annotated[
    str,
    typer.Option(
        "--merchant", metavar="ID", parser=parser_of("merchant"), help="Only those of this merchant."
    ),
]


def after(kind: str) -> Any:
    """Returns the option that begins a list after the last thing of the page before."""
    return typer.Option(
        "--after", metavar="ID", parser=parser_of(kind), help="Begin after this one: the next page."
    )
