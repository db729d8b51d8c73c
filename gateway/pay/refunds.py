"""The refunds of a payment, and the form for the account that one waits for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from gateway.pay.languages import N_
from kit.base.proto import most_of
from kit.web.forms import Form

ACCOUNT_MAX_CHARACTERS: Final = most_of(pb.RefundAccount, "account")
FIELDS: Final = frozenset({"account_kind", "account", "holder", "bank"})
"""The fields by which withdrawals refuses an account."""
KINDS: Final[Mapping[str, str]] = {
    "iban": N_("IBAN"),
    "card": N_("Card number"),
    "phone": N_("Phone number"),
    "upi": N_("UPI address"),
    "free": N_("Another account"),
}
_STATUSES: Final = {
    pb.REFUND_STATUS_WAITING_FOR_ACCOUNT: "waiting",
    pb.REFUND_STATUS_READY: "requested",
    pb.REFUND_STATUS_SENT: "sent",
    pb.REFUND_STATUS_SUCCEEDED: "done",
    pb.REFUND_STATUS_FAILED: "failed",
}


@dataclass(frozen=True)
class Refund:
    """A refund; `account` has its last characters, empty until it is given. `failure` is the operator's sentence. A
    surplus that was credited to the shop has the status `credited`.
    """

    id: str
    amount: str
    status: str
    account: str
    failure: str
    is_surplus: bool = False

    @property
    def is_open(self) -> bool:
        return self.status in ("waiting", "requested", "sent")


@dataclass(frozen=True)
class Typed:
    """The values that the customer typed into the form of one refund."""

    refund_id: str
    kind: str
    account: str
    holder: str
    bank: str

    def request(self, invoice_id: str) -> pb.GiveRefundAccountRequest:
        account = pb.RefundAccount(kind=self.kind, account=self.account, holder=self.holder, bank=self.bank)
        return pb.GiveRefundAccountRequest(invoice_id=invoice_id, refund_id=self.refund_id, account=account)


def typed_in(form: Form) -> Typed:
    account, holder, bank = (
        form.line(name, most=ACCOUNT_MAX_CHARACTERS) for name in ("account", "holder", "bank")
    )
    return Typed(form.text("refund_id"), form.text("kind"), account, holder, bank)


def refunds_of(found: pb.ListRefundsOfPageResponse) -> Sequence[Refund]:
    """Returns the refunds that concern the customer, which a canceled one does not, and the surplus."""
    refunds = [
        Refund(
            each.refund_id,
            each.refund_amount,
            _STATUSES[each.status],
            each.account.account,
            each.failure,
            each.origin == pb.REFUND_ORIGIN_SURPLUS,
        )
        for each in found.refunds
        if each.status in _STATUSES
    ]
    surplus = found.surplus_credited
    return [*refunds, Refund("", surplus, "credited", "", "", is_surplus=True)] if surplus else refunds
