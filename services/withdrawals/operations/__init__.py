"""One function per RPC or consumed event: the transaction, the rules, the answer.

Each takes `Deps` first, then values as they came in, and may raise VALIDATION_ERROR besides the reasons that it
names. The id of a withdrawal that is no UUID is answered like an unknown id.
"""

from services.withdrawals.operations.books import (
    Report,
    backlog,
    check_ledger,
    credit_invoice,
    get_balance,
    list_credits,
)
from services.withdrawals.operations.creating import create_withdrawal
from services.withdrawals.operations.methods import list_withdrawal_methods, set_withdrawal_method
from services.withdrawals.operations.reading import (
    Page,
    get_withdrawal,
    list_all_withdrawals,
    list_withdrawals,
)
from services.withdrawals.operations.stepping import (
    cancel_withdrawal,
    complete_withdrawal,
    fail_withdrawal,
    process_withdrawal,
)

__all__ = [
    "Page",
    "Report",
    "backlog",
    "cancel_withdrawal",
    "check_ledger",
    "complete_withdrawal",
    "create_withdrawal",
    "credit_invoice",
    "fail_withdrawal",
    "get_balance",
    "get_withdrawal",
    "list_all_withdrawals",
    "list_credits",
    "list_withdrawal_methods",
    "list_withdrawals",
    "process_withdrawal",
    "set_withdrawal_method",
]
