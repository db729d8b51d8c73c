"""The values of this service that acts decide (kit.audit.decisions)."""

from typing import Final

from kit.audit.decisions import Decided
from services.withdrawals.domain import FIRST_METHODS

WITHDRAWAL: Final = Decided(
    "withdrawal",
    (
        "withdrawal.create",
        "withdrawal.process",
        "withdrawal.complete",
        "withdrawal.fail",
        "withdrawal.cancel",
    ),
    (
        *("merchant_id", "request_key", "method_id", "network", "address", "address_memo"),
        *("amount", "network_fee"),
        *("status", "substatus", "external_tx_id"),
    ),
)
REFUND: Final = Decided(
    "refund",
    ("refund.request", "refund.account", "refund.send", "refund.complete", "refund.fail", "refund.cancel"),
    (
        *(
            "merchant_id",
            "invoice_id",
            "external_id",
            "origin",
            "case_number",
            "refund_amount",
            "currency_code",
        ),
        *("amount", "conversion_rate", "reason", "status", "account_kind", "account", "holder", "bank"),
        *("account_by_customer", "bank_reference", "failure", "created_at", "finished_at"),
    ),
)
ADDRESS: Final = Decided(
    "withdrawal-address",
    ("withdrawal-address.add", "withdrawal-address.remove"),
    ("merchant_id", "name", "method_id", "network", "address", "address_memo", "added_by", "usable_at"),
)
CORRECTION: Final = Decided(
    "correction",
    ("correction.make",),
    (
        *("merchant_id", "kind", "invoice_id", "case_number", "amount", "owed"),
        *("received_amount", "currency_code", "conversion_rate", "reason", "evidence", "request_key"),
        "created_at",
    ),
)
REMOVAL: Final = Decided("withdrawal-address", ADDRESS.acts, ("removed_at",))
METHOD: Final = Decided(
    "withdrawal-method",
    ("withdrawal-method.set",),
    ("id", "code", "network", "name", "network_fee", "min_amount", "memo_allowed", "enabled"),
    first={str(method["code"]): method for method in FIRST_METHODS},
)
