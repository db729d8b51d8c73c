"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import partial
from typing import Final

from fiatgate.withdrawals.v1 import refunds_pb2
from kit.base.account_forms import AccountKind, normal_form
from kit.base.money import USDT_PLACES, has_decimals
from kit.base.proto import most_of
from kit.rpc import values
from services.withdrawals.addresses import NETWORKS
from services.withdrawals.domain import MAX_ADDRESS_CHARACTERS, MAX_MEMO_CHARACTERS, MAX_TX_ID_CHARACTERS


def amount(field: str, text: str) -> Decimal:
    """Returns a number of USDT with at most 6 decimals, possibly below zero: the caller checks the bounds."""
    value = values.decimal(field, text)
    if not has_decimals(value, at_most=USDT_PLACES):
        raise values.invalid(field, "USDT has at most 6 decimals")
    return value


def network(text: str) -> str:
    if text not in NETWORKS:
        raise values.invalid("method.network", f"Expected one of {', '.join(sorted(NETWORKS))}")
    return text


def address(text: str) -> str:
    if not 0 < len(text) <= MAX_ADDRESS_CHARACTERS or not text.isprintable():
        message = f"Expected 1 to {MAX_ADDRESS_CHARACTERS} printable characters"
        raise values.invalid("address", message)
    return text


def memo(text: str | None) -> str | None:
    """Returns the memo; null for an empty one."""
    if text and (len(text) > MAX_MEMO_CHARACTERS or not text.isprintable()):
        message = f"Expected at most {MAX_MEMO_CHARACTERS} printable characters"
        raise values.invalid("address_memo", message)
    return text or None


def external_tx_id(text: str) -> str:
    printable = text.isascii() and text.isprintable() and " " not in text
    if not 0 < len(text) <= MAX_TX_ID_CHARACTERS or not printable:
        message = f"Expected 1 to {MAX_TX_ID_CHARACTERS} printable ASCII characters without spaces"
        raise values.invalid("external_tx_id", message)
    return text


@dataclass(frozen=True)
class Account:
    """Where a refund goes, with the names of the refund's columns."""

    account_kind: str | None
    account: str | None
    holder: str | None
    bank: str | None

    def columns(self) -> Mapping[str, str | None]:
        return asdict(self)


def quoted(text: str) -> str:
    """Returns the text as a part of a sentence that people approve: no quotation mark of its own ends it."""
    return f"“{text.translate(_STRAIGHT)}”"


_STRAIGHT: Final = str.maketrans("“”„", '"""')
_MOST: Final = most_of(refunds_pb2.RefundAccount, "account")


def account(*, kind: str, account: str, holder: str, bank: str) -> Account:
    """Returns the account in the form of its kind. Raises one VALIDATION_ERROR for all fields that are wrong."""
    if kind not in set(AccountKind):
        raise values.invalid("account_kind", f"Expected one of {', '.join(AccountKind)}")

    def written() -> str:
        text = values.label("account", account.strip(), most=_MOST)
        return values.parsed("account", text, partial(normal_form, AccountKind(kind)))

    checked = values.together(
        account=written,
        holder=lambda: values.label("holder", holder.strip(), most=_MOST),
        bank=lambda: values.label("bank", bank.strip(), most=_MOST) if bank.strip() else None,
    )
    return Account(kind, **checked)
