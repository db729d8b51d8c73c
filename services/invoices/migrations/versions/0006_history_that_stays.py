"""History that stays: records of every change, terms that are kept, rows that are never deleted"""

from kit.db.migrations import guards

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

INVOICE_TERMS = (
    "id",
    "merchant_id",
    "key_id",
    "external_id",
    "amount",
    "currency_code",
    "customer_id",
    "purpose",
    "callback_url",
    "success_url",
    "fail_url",
    "created_at",
    "expires_at",
    "made_as",
)
DEAL_TERMS = (
    "id",
    "invoice_id",
    "merchant_id",
    "method_code",
    "method_name",
    "currency_code",
    "currency_decimals",
    "invoice_amount",
    "conversion_rate",
    "client_percent",
    "merchant_percent",
    "requisite_id",
    "created_at",
    "expires_at",
)
REQUISITE_TERMS = ("id", "method_code", "holder", "account", "bank", "created_at")
CASE_TERMS = ("number", "invoice_id", "merchant_id", "deal_id", "opened_at", "note")


def upgrade() -> None:
    guards.make_records()
    guards.record("invoices", "invoice", made_in_row=True)
    guards.keep("invoices", INVOICE_TERMS, ended="finished_at")
    guards.stay("invoices")
    guards.record("deals", "deal")
    guards.keep("deals", DEAL_TERMS, ended="finished_at")
    guards.stay("deals")
    guards.record("deal_transitions", "transition", subject="deal_id")
    guards.append_only("deal_transitions")
    guards.record("requisites", "requisite", apart_from=("open_deals", "last_used_at"))
    guards.keep("requisites", REQUISITE_TERMS)
    guards.stay("requisites")
    guards.record("cases", "case", subject="number")
    guards.keep("cases", CASE_TERMS, ended="resolved_at")
    guards.stay("cases")
    guards.append_only("proofs")
