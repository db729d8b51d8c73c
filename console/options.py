"""The settings of a merchant as forms have them: their groups, and the change that a form makes.

A form carries the values that it was made from (`was:`). Only the fields that the person changed are sent, so two
people who change different settings do not undo each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.money import fraction_of, percent_of
from kit.base.proto import optional
from kit.web.forms import Form

TEXT_MAX_CHARACTERS: Final = 4096
LIST_MAX_CHARACTERS: Final = 16 * 1024
"""More than the most codes that a merchant may have: a list that is cut would look like another person's change."""
LISTS: Final = frozenset({"allowed_currencies", "allowed_methods", "frame_origins"})


@dataclass(frozen=True)
class Group:
    """Settings that belong together: one form."""

    name: str
    title: str
    about: str
    fields: Sequence[str]


LATE_MONEY: Final = Group(
    "late_money",
    "Money that comes late",
    "For money that a customer sends after the invoice has ended. An open case keeps what was set when it began.",
    ("late_money",),
)
GROUPS: Final[Mapping[str, Group]] = {
    each.name: each
    for each in (
        Group(
            "shown",
            "What customers see",
            "On the payment page and the receipt; pages that are open show a change within seconds.",
            ("name", "colour", "frame_origins"),
        ),
        Group(
            "terms",
            "Commission",
            "For new deals. A deal that is open keeps the commission that it was made with.",
            ("category_code", "client_share"),
        ),
        LATE_MONEY,
        Group(
            "addresses",
            "Web addresses",
            "For invoices that name none of their own. An event that was made keeps its address.",
            ("callback_url", "success_url", "fail_url"),
        ),
        Group(
            "limits",
            "What customers may use",
            "For new invoices and new deals. Without a tick all are allowed, also those that are made later.",
            ("allowed_currencies", "allowed_methods"),
        ),
    )
}


def values_of(merchant: pb.Merchant) -> dict[str, str]:
    """Returns each setting as the forms have it; lists are one text, in lines."""
    return {
        "name": merchant.name,
        "colour": merchant.branding.colour,
        "frame_origins": "\n".join(merchant.branding.frame_origins),
        "category_code": merchant.category_code,
        "client_share": percent_of(merchant.client_share),
        "callback_url": merchant.callback_url,
        "success_url": merchant.success_url,
        "fail_url": merchant.fail_url,
        "allowed_currencies": "\n".join(merchant.allowed_currencies),
        "allowed_methods": "\n".join(merchant.allowed_methods),
        "late_money": merchant.late_money,
    }


def typed_in(form: Form, fields: Sequence[str]) -> dict[str, str]:
    """Returns the fields as they were typed; ticked boxes as one text, in lines."""
    return {
        field: "\n".join(form.all(field))
        if field.startswith("allowed_")
        else form.prose(field, most=_most(field))
        for field in fields
    }


def was_in(form: Form, fields: Sequence[str]) -> dict[str, str]:
    """Returns the values that the form was made from."""
    return {field: form.prose(f"was:{field}", most=_most(field)) for field in fields}


Change = TypeVar(
    "Change", pb.ConfigureMerchantRequest, pb.ConfigureOwnMerchantRequest, pb.SetLateMoneyRequest
)


def change_of(
    kind: type[Change], merchant_id: str, typed: Mapping[str, str], was: Mapping[str, str]
) -> Change | None:
    """Returns the request with the fields that differ from what they were; None when none does."""
    changed = [field for field, text in typed.items() if not _same(field, text, was[field])]
    if not changed:
        return None
    return kind(
        merchant_id=merchant_id,
        was=pb.MerchantOptions(**{field: _value(field, was[field]) for field in changed}),
        **{field: _value(field, typed[field]) for field in changed},
    )


def logo_of(merchant: pb.Merchant) -> str:
    """Returns the digest of the logo; empty for none."""
    return optional(merchant.branding, "logo") or ""


def items_of(text: str) -> list[str]:
    """Returns the items of a list that was typed in lines, or with commas between them."""
    return [item.strip() for item in text.replace(",", "\n").split("\n") if item.strip()]


def _most(field: str) -> int:
    return LIST_MAX_CHARACTERS if field in LISTS else TEXT_MAX_CHARACTERS


def _same(field: str, text: str, was: str) -> bool:
    return sorted(items_of(text)) == sorted(items_of(was)) if field in LISTS else text == was


def _value(field: str, text: str) -> Any:
    if field == "frame_origins":
        return pb.AllowedOrigins(origins=items_of(text))
    if field == "client_share":
        return fraction_of(text)
    if field in LISTS:
        return pb.AllowedCodes(codes=items_of(text))
    return text
