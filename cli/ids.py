"""Ids that an operator types: whole, or their first characters.

The service that keeps the things completes a beginning. One that two things share is refused, so a command never does
its work on another thing than the one that was meant.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from cli import connection
from cli.command import Filled, argument, option
from cli.stack import NoAddress
from fiatgate.find.v1 import find_pb2 as pb
from kit.base.ids import ids_beginning_with, parse_id
from kit.base.proto import most_of
from kit.rpc.errors import Refused, not_found

SERVICES: Final = {
    "merchant": "identity",
    "key": "identity",
    "invoice": "invoices",
    "deal": "invoices",
    "link": "invoices",
    "requisite": "invoices",
    "withdrawal": "withdrawals",
    "correction": "withdrawals",
    "refund": "withdrawals",
    "person": "identity",
    "invitation": "identity",
    "session": "identity",
    "line": "bank",
    "connector": "bank",
}
"""The service that keeps each kind of thing."""

FOUND_MOST: Final = 100
SHOWN_MOST: Final = 10
"""The most things that an answer names."""

_UNKNOWN: Final = {kind: f"{kind.upper()}_NOT_FOUND" for kind in SERVICES} | {
    "key": "API_KEY_NOT_FOUND",
    "line": "BANK_LINE_NOT_FOUND",
}


class Ambiguous(Exception):
    """Two or more things have ids that begin like this."""

    def __init__(self, kind: str, beginning: str, ids: list[str], *, more: bool) -> None:
        many = f"{len(ids)} or more" if more else str(len(ids))
        super().__init__(f"{many} {kind}s are called or begin with {beginning}: give more of the id")
        self.ids = ids


def completed(kind: str, text: str) -> str:
    """Returns the id that begins with the text. A merchant is known by its name as well, unless the name could be the
    beginning of an id: nobody gets another one's place by a name. A whole id, and another text that is no beginning,
    come back as they are: the service of the command answers them. Raises Ambiguous, and Refused when there is none.
    """
    text = text.strip()
    if parse_id(text):
        return text
    if ids_beginning_with(text) is None:
        return _merchant_named(text) if kind == "merchant" else text
    answer = connection.find(SERVICES[kind]).CompleteId(pb.CompleteIdRequest(kind=kind, beginning=text))
    if not answer.ids:
        raise not_found(_UNKNOWN[kind], f"No {kind} has an id that begins with {text}")
    if len(answer.ids) > 1:
        raise Ambiguous(kind, text, list(answer.ids), more=answer.more)
    return answer.ids[0]


def _merchant_named(name: str) -> str:
    """Returns the id of the only merchant with this name, in any case; the text itself when nobody can say."""
    if not 0 < len(name) <= most_of(pb.FindRequest, "text"):
        return name
    try:
        answer = connection.find(SERVICES["merchant"]).Find(pb.FindRequest(text=name, limit=FOUND_MOST))
    except (NoAddress, Refused):  # the call of the command meets it as well
        return name
    ids = [
        each.id for each in answer.found if each.field == "name" and each.value.casefold() == name.casefold()
    ]
    if len(ids) > 1 or (ids and answer.cut):
        raise Ambiguous("merchant", name, ids, more=bool(answer.cut))
    if not ids:
        raise not_found(_UNKNOWN["merchant"], f"No merchant is called {name}, and no id begins so")
    return ids[0]


def parser_of(kind: str) -> Callable[[str], str]:
    """Returns the parser of an argument or option that is the id of such a thing."""

    def parse(text: str) -> str:
        return completed(kind, text)

    return parse


def one(kind: str, metavar: str = "ID", field: str = "", **settings: Any) -> Filled:
    """Returns the argument that is the id of such a thing; it fills `<kind>_id`, or `field`."""
    return argument(field or f"{kind}_id", metavar, **_settings(kind) | settings)


def many(kind: str, metavar: str = "ID …", **settings: Any) -> Any:
    """Returns the argument of a command that takes several ids."""
    return typer.Argument(metavar=metavar, **_settings(kind) | settings)


def person(field: str = "person_id") -> Filled:
    return argument(field, "PERSON", "E-mail address, or id.", parser=parser_of("person"))


def of_merchant(help: str = "Only those of this merchant.") -> Filled:
    return option("merchant_id", "ID", help, "--merchant", default="", parser=parser_of("merchant"))


def after(kind: str, field: str = "") -> Filled:
    """Returns the option that begins a list after the last thing of the page before."""
    return option(
        field or f"after_{kind}_id",
        *("ID", "Begin after this one: the next page.", "--after"),
        default="",
        parser=parser_of(kind),
    )


def _settings(kind: str) -> dict[str, Any]:
    help = f"The {kind}'s id, or its first characters{', or its name' if kind == 'merchant' else ''}."
    return {"help": help, "parser": parser_of(kind), "show_default": False}


MerchantId = Annotated[str, many("merchant", "MERCHANT")]
DealIds = Annotated[list[str], many("deal")]
SomeDealIds = Annotated[list[str] | None, many("deal")]
InvoiceIds = Annotated[list[str], many("invoice", "INVOICE_ID …")]
LinkIds = Annotated[list[str], many("link", "LINK_ID …")]
MerchantIds = Annotated[list[str], many("merchant", "MERCHANT …")]
KeyIds = Annotated[list[str], many("key", "KEY_ID …")]
RequisiteIds = Annotated[list[str], many("requisite")]
WithdrawalIds = Annotated[list[str], many("withdrawal")]
