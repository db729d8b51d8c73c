"""The ids in the payload of a fact, for logs and lists."""

from collections.abc import Callable

from google.protobuf.message import DecodeError, Message

from kit.base.ids import parse_id


def ids_of(message: type[Message], *fields: str) -> Callable[[bytes], dict[str, str]]:
    """Returns a function that returns the ids in a payload of this message, by field. It raises nothing: a field
    without a UUID is left out, and a payload that is no such message has no ids.
    """

    def ids_in(payload: bytes) -> dict[str, str]:
        try:
            fact = message.FromString(payload)
        except DecodeError:
            return {}
        found = {field: parse_id(getattr(fact, field)) for field in fields}
        return {field: str(id) for field, id in found.items() if id is not None}

    return ids_in
