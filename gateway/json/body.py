"""Request bodies: strict JSON first, then the schema of the endpoint (docs/api.md#create-invoice).

A body that is not JSON and a body with a field that is too long get the same kind of answer: 400 with a list of faults
(docs/api.md#validation-errors).
"""

import json
import re
from functools import lru_cache
from typing import Annotated, Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

from falcon.util.mediatypes import parse_header
from google.protobuf.message import Message
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2
from gateway.exchange import Request
from gateway.json.problems import BodyFault, FieldFault, InvalidBody, InvalidFields
from kit.base import money
from kit.base.proto import most_of
from kit.egress.address import NEVER_IN_A_URL, URL_MAX_CHARACTERS
from kit.web.forms import TYPE_MAX_CHARACTERS

AMOUNT_MAX_DECIMALS: Final = money.FIAT_PLACES
WHOLE_DIGITS_MAX: Final = 30
AMOUNT_MAX: Final = 24
"""Characters of the amount of a refund, which is at most that of an invoice."""
FAULTS_MOST: Final = 100
DECIMALS_KEPT: Final = AMOUNT_MAX_DECIMALS + 1  # enough to detect too many

_UTF_8_NAMES: Final = ("", "utf-8", "utf8")
_never_in_a_url: Final = re.compile(f"[{NEVER_IN_A_URL}]").search

_NO_TEXT: Final = object()  # in place of an object within a body


def json_object(req: Request, *, has_objects: bool = False) -> dict[str, Any]:
    """Returns the body as a JSON object. Raises InvalidBody.

    It is stricter than `json.loads` where two programs could read one body differently: duplicate keys, NaN, other
    encodings. No field of the API is a number, so numbers of any size are read but never computed.

    has_objects  whether a field is an object or a list of them; else objects in members are not made
    """
    _require_json_type(req)
    try:
        members = (_all_members if has_objects else _members)(req.exchange.body.decode())
    except UnicodeDecodeError:
        raise _not_json("json_invalid", "the body must be UTF-8") from None
    except RecursionError:
        raise _not_json("json_invalid", "the body is nested too deeply") from None
    except ValueError as error:
        raise _not_json("json_invalid", f"the body must be JSON: {error}") from None
    if members is None:
        raise _not_json("model_type", "the body must be a JSON object")
    return members


def no_other_than_json(req: Request) -> None:
    """Checks a POST that needs no body: a body that comes nevertheless must have the JSON type. Raises InvalidBody."""
    if req.exchange.body:
        _require_json_type(req)


def _require_json_type(req: Request) -> None:
    """Requires application/json, with any parameters except another charset, uncompressed. Raises InvalidBody."""
    if fault := _fault_of_type(req.content_type or "application/octet-stream"):
        raise _not_json("content_type", fault)
    if (req.get_header("Content-Encoding") or "identity").strip().lower() != "identity":
        raise _not_json("content_encoding", "Content-Encoding is not supported: send the body as it is")


@lru_cache(maxsize=64)  # clients send few different ones, and parsing one costs as much as parsing the body
def _fault_of_type(header: str) -> str | None:
    if len(header) > TYPE_MAX_CHARACTERS:
        return "Content-Type is too long"
    media_type, parameters = parse_header(header)
    if media_type.lower() != "application/json":
        return "Content-Type must be application/json"
    if parameters.get("charset", "").lower() not in _UTF_8_NAMES:
        return "charset must be utf-8"
    return None


def _not_json(code: str, message: str) -> InvalidBody:
    return InvalidBody(BodyFault(("body",), code, message))


def _members(text: str) -> dict[str, Any] | None:
    """Returns the members of the outermost object; None when the text is another value. Raises ValueError.

    Few fields are objects, and none is a number: nothing is made of those within. Kept, 20,000 objects took three times
    as long.
    """
    outermost: list[tuple[str, Any]] = []

    def read(pairs: list[tuple[str, Any]]) -> object:
        nonlocal outermost
        if len(pairs) > 1 and len(dict(pairs)) != len(pairs):
            raise ValueError("an object has the same key twice")
        outermost = pairs  # the last one that is read
        return _NO_TEXT

    decoder = json.JSONDecoder(
        object_pairs_hook=read,
        parse_int=bool,  # without a call of Python for each number
        parse_float=bool,
        parse_constant=_refuse_constant,
    )
    return dict(outermost) if decoder.decode(text) is _NO_TEXT else None


def _all_members(text: str) -> dict[str, Any] | None:
    """Returns the same with the objects within."""
    made = json.loads(
        text, object_pairs_hook=_once, parse_int=bool, parse_float=bool, parse_constant=_refuse_constant
    )
    return made if isinstance(made, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has the same key twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


# -- create-invoice


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise PydanticCustomError("string_nul", "String should not contain the NUL character")
    return text


def _web_url(text: str) -> str:
    """Checks a URL: http or https, a host, no user name or password, no characters that a header or a link can't
    hold.
    """
    try:
        parts = urlsplit(text)
        usable = bool(
            parts.scheme in ("http", "https")
            and _usable_host(parts.hostname or "")
            and "@" not in parts.netloc
            and parts.port != 0
            and not _never_in_a_url(text)
        )
    except ValueError:  # an invalid port or IPv6 address
        usable = False
    if not usable:
        raise PydanticCustomError(
            "url_invalid", "URL should be http or https with a host and without credentials"
        )
    return text


def _bounded(amount: str) -> str:
    """Returns the amount. Replaces one of a thousand digits by a shorter one that is also above every maximum."""
    whole, point, decimals = amount.partition(".")
    whole = whole.lstrip("0") or "0"
    return (
        ("9" * WHOLE_DIGITS_MAX if len(whole) > WHOLE_DIGITS_MAX else whole)
        + point
        + decimals[:DECIMALS_KEPT]
    )


def _usable_host(host: str) -> bool:
    """Returns whether the host is an address or a valid name: labels of 1 to 63 characters, none beginning or ending in
    "-".
    """
    if ":" in host:  # urlsplit has checked the text in brackets
        return True
    labels = host.rstrip(".").split(".")
    return all(
        0 < len(label) <= 63 and not label.startswith("-") and not label.endswith("-") for label in labels
    )


def _addressable(text: str) -> str:
    """Refuses "." and "..": clients remove them from a path (RFC 3986, 5.2.4), so such an invoice could not be
    requested.
    """
    if text in {".", ".."}:
        raise PydanticCustomError("string_dots", "String should not be '.' or '..'")
    return text


def length(field: str, of: type[Message] = pb.CreateInvoiceRequest) -> StringConstraints:
    return StringConstraints(min_length=1, max_length=most_of(of, field))


NoNul = AfterValidator(_no_nul)
_VALUE: Final = StringConstraints(max_length=most_of(pb.Metadata, "value"))
_Url = Annotated[
    str, StringConstraints(min_length=1, max_length=URL_MAX_CHARACTERS), AfterValidator(_web_url)
]


class CreateInvoice(BaseModel):
    """The body of create-invoice. Lengths are in characters, unknown fields are ignored, null means absent."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    # An amount with more decimals than documented gets a 422 of its own (`create_invoice_from`).
    amount: Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?$"), AfterValidator(_bounded)]
    currency_code: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    customer_id: Annotated[str, length("customer_id"), NoNul]
    external_id: Annotated[str, length("external_id"), NoNul, AfterValidator(_addressable)]
    purpose: Annotated[str, length("purpose"), NoNul] | None = None
    callback_url: _Url | None = None
    success_url: _Url | None = None
    fail_url: _Url | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, length("key", pb.Metadata), NoNul], Annotated[str, _VALUE, NoNul]],
            Field(max_length=most_of(pb.CreateInvoiceRequest, "metadata")),
        ]
        | None
    ) = None


def create_invoice_from(req: Request, *, http_callbacks: bool) -> CreateInvoice:
    """Returns the body of create-invoice. Raises InvalidBody, or InvalidFields for an amount with too many decimals.

    http_callbacks  allow http callback URLs; a development setting (WEBHOOK_ALLOW_PRIVATE)
    """
    body = req.exchange.body
    # Objects within are made only for a body that may have the one member that is an object.
    wanted = validated(CreateInvoice, req, has_objects=b"metadata" in body or b"\\u" in body)
    if wanted.callback_url and not http_callbacks and not wanted.callback_url.lower().startswith("https:"):
        raise InvalidBody(BodyFault(("body", "callback_url"), "url_scheme", "URL scheme should be 'https'"))
    if len(wanted.amount.partition(".")[2]) > AMOUNT_MAX_DECIMALS:
        raise InvalidFields(FieldFault("amount", f"must have at most {AMOUNT_MAX_DECIMALS} decimal places"))
    return wanted


_Body = TypeVar("_Body", bound=BaseModel)


def validated(body: type[_Body], req: Request, *, has_objects: bool = False) -> _Body:
    """Returns the body, checked. Raises InvalidBody, which names the first FAULTS_MOST faults."""
    try:
        return body.model_validate(json_object(req, has_objects=has_objects))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidBody(
            *(
                BodyFault(("body", *map(str, fault["loc"])), fault["type"], fault["msg"])
                for fault in faults[:FAULTS_MOST]
            )
        ) from None


# -- test mode


class Simulate(BaseModel):
    """The body of a simulated step. Unknown fields are ignored, null means absent."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    method_code: Annotated[str, StringConstraints(max_length=64), NoNul] | None = None
    amount: (
        Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]{1,2})?$", max_length=AMOUNT_MAX)] | None
    ) = None


def simulate_from(req: Request) -> Simulate:
    """Returns the body; none is an empty one. Raises InvalidBody."""
    return validated(Simulate, req) if req.exchange.body else Simulate()


# -- refunds


class CreateRefund(BaseModel):
    """The body of a refund. Lengths are in characters, unknown fields are ignored, null means absent."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    external_id: Annotated[str, length("external_id", refunds_pb2.RequestRefundRequest), NoNul]
    amount: (
        Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]{1,2})?$", max_length=AMOUNT_MAX)] | None
    ) = None
    reason: Annotated[str, length("reason", refunds_pb2.RequestRefundRequest), NoNul] | None = None
    account_kind: str | None = None
    account: Annotated[str, length("account", refunds_pb2.RefundAccount), NoNul] | None = None
    account_holder: Annotated[str, length("holder", refunds_pb2.RefundAccount), NoNul] | None = None
    account_bank: Annotated[str, length("bank", refunds_pb2.RefundAccount), NoNul] | None = None


def create_refund_from(req: Request) -> CreateRefund:
    """Returns the body of a refund. Raises InvalidBody, also for a part of an account."""
    wanted = validated(CreateRefund, req)
    given = {
        "account_kind": wanted.account_kind,
        "account": wanted.account,
        "account_holder": wanted.account_holder,
    }
    missing = [name for name, value in given.items() if value is None]
    if missing and (len(missing) < len(given) or wanted.account_bank is not None):
        raise InvalidBody(
            *(BodyFault(("body", name), "missing", "Field required with an account") for name in missing)
        )
    return wanted
