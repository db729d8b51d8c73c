"""The rows whose values acts decide (kit.db.books). `checks` has the amounts and accounts of the ledger."""

from typing import Final

from kit.audit import approval_books
from kit.audit.decisions import follow_acts
from kit.db.books import Part
from kit.db.described import schema_part
from services.withdrawals.store.decisions import ADDRESS, CORRECTION, METHOD, REFUND, REMOVAL, WITHDRAWAL

PARTS: Final = (
    schema_part("withdrawals"),
    Part(
        name="withdrawals",
        one="withdrawal",
        table="withdrawals",
        follows=(follow_acts(WITHDRAWAL, table="withdrawals", made_by=("withdrawal.create",)),),
    ),
    Part(
        name="withdrawal addresses",
        one="withdrawal address",
        table="withdrawal_addresses",
        follows=(
            follow_acts(
                ADDRESS,
                table="withdrawal_addresses",
                where="removed_at IS NULL",
                made_by=("withdrawal-address.add",),
            ),
            follow_acts(REMOVAL, table="withdrawal_addresses"),
        ),
    ),
    Part(
        name="withdrawal methods",
        one="withdrawal method",
        table="withdrawal_methods",
        key="code",
        key_type="text",
        follows=(
            follow_acts(
                METHOD,
                table="withdrawal_methods",
                id="code",
                key_type="text",
                made_by=("withdrawal-method.set",),
            ),
        ),
    ),
    Part(
        name="corrections",
        one="correction",
        table="corrections",
        follows=(follow_acts(CORRECTION, table="corrections", made_by=("correction.make",)),),
    ),
    Part(
        name="refunds",
        one="refund",
        table="refunds",
        follows=(follow_acts(REFUND, table="refunds", made_by=("refund.request",)),),
    ),
    approval_books.PART,
)
