"""The people whom a request names, as far as accounts answers: the command line takes any address with --as."""

from cli import connection
from cli.stack import NoAddress
from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.errors import Refused


def doubt(email: str) -> str:
    """Returns why this is no active person of the staff; "" for one who is, and when identity does not answer."""
    try:
        person = connection.people().GetPerson(pb.GetPersonRequest(person=email)).person
    except Refused as refused:
        return f"{email} is no person of the staff" if refused.reason == "PERSON_NOT_FOUND" else ""
    except NoAddress:
        return ""
    if person.disabled:
        return f"{email} is disabled"
    return "" if person.roles else f"{email} has no role of the staff"


def is_disabled(email: str) -> bool:
    """Returns whether the person may do nothing any more; False when identity does not answer."""
    return doubt(email).endswith(" is disabled")


def named_in(author: str) -> str:
    """Returns the address of a person, signed in or named with --as; "" for a command line without a name."""
    address = author.rpartition(" for ")[2]
    return "" if address.startswith("cli:") else address
