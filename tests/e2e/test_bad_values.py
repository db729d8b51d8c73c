"""Each field of each RPC of these services is refused beyond its bounds, with its documented reason and its name.

A key is a field or `Method.field`, which goes first. The protos bound the length of texts.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from fiatgate.bounds.v1.bounds_pb2 import most as most_option
from fiatgate.invoices.v1 import lines_pb2
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from tests.e2e.test_other_merchants import Services
from tests.support.contracts import rpcs_of
from tests.support.stack import Stack
from tests.test_permissions import method_of
from tests.withdrawals.conftest import TON, TON_ADDRESS

FREE_TYPES: Final = (FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_MESSAGE)
INVALID: Final = "VALIDATION_ERROR"
QUERY: Final = dict.fromkeys(
    (
        "page",
        "per_page",
        "ListWithdrawals.status",
        "ListAllWithdrawals.status",
        "order",
        "ListInvoices.currency_code",
        "ListPostedLines.account",
    ),
    "query",
)
"""These fields come from the query of an address, and are refused as a bad query."""
OF_EVENTS: Final = ("ListInvoiceEvents.invoice_id", "ResendLatest.invoice_id")
IN: Final = ("invoices", "withdrawals", "webhooks", "catalog", "bank")
ID: Final = str(new_id())
NO_IDS: Final = ("x", "\0", f"{{{ID}}}")
UNKNOWN: Final = ("", *NO_IDS, ID)
AMOUNTS: Final = ("", "1e3", "NaN", "Infinity", "10,5", " 10", "١٠", "9" * 41)
FORMS: Final = ("ten", *AMOUNTS[1:])
NO_NAMES: Final = ("", "a b", "ä", "x" * 65, "a\n")
NO_CODES: Final = ("", "EURO", "E1R", "ÄÖÜ", "EUR\n")
CODES: Final = ("eur", "EU\0", *NO_CODES)
LINKS: Final = (
    "",
    "ftp://cdn.example/a",
    "javascript:alert(1)",
    "https://",
    "https://u:p@cdn.example/",
    "//x",
)
MERCHANT: Final = {"merchant_id": ID, "client_share": "0", "status": 1, "category_commission": "0.1"} | {
    f"{each}_url": "https://shop.example/" for each in ("success", "fail")
}
CURRENCY: Final = {
    "code": "XTS",
    "name": "Crown",
    "symbol": "¤",
    "decimals": 2,
    "min_amount": "1",
    "max_amount": "10000",
    "markup": "0",
}
METHOD: Final = {
    "method_code": "method",
    "currency_code": "EUR",
    "name": "Bank",
    "min_sum": "10",
    "max_sum": "500",
    "payment_minutes": 15,
    "commission": "0.02",
}
WITHDRAWAL_METHOD: Final = {
    "code": "USDT_X",
    "network": "TRC20",
    "name": "USDT",
    "network_fee": "1",
    "min_amount": "5",
}

RIGHT: Final[dict[str, Any]] = {
    "currency": CURRENCY,
    "method": METHOD,
    "SetWithdrawalMethod.method": WITHDRAWAL_METHOD,
    "ListAllInvoices.amount": "",
    "CompleteWithdrawal.external_tx_id": "x",
    "outcome": "Sent back",
    "line_id": ID,
    "content": b"x",
    "file_name": "a.xml",
    "CreateConnector.accounts": [{"account": "1", "currency_code": "EUR"}],
    "SaveCsvProfile.profile": '{"columns": {"day": 1, "amount": "Sum"}, "currency": "EUR", "account": "1"}',
    "IgnoreLine.reason": "Interest",
    "UseLine.left": "1",
    "UseLine.used_for": f"refund:{ID}",
    "ConfirmByLine.line": {"line_id": ID, "amount": "1", "line_amount": "1"},
    "SetLineRule.enabled": True,
    "deal_most": "10",
    "day_most": "10",
    "GetRateHistory.since": None,
    "ResolveAppeal.rejected": True,
    "CheckAdjustment.received_amount": "1",
    "since": Timestamp(seconds=1),
    "SetRate.rate": "1",
    "merchant_id": ID,
    "invoice_id": ID,
    "key_id": ID,
    "request_key": ID,
    "merchant": MERCHANT,
    "amount": "10",
    "network_fee": "1",
    "kind": 1,
    "event_id": 1,
    "currency_code": "EUR",
    "customer_id": "customer",
    "external_id": "order",
    "name": "exchange",
    "address": TON_ADDRESS,
    "withdrawal_method_id": TON,
    "page": 1,
    "per_page": 20,
    "limit": 1,
    "older_than_days": 1,
    "first_day": "2026-11-01",
    "last_day": "2026-11-02",
    "by": 1,
    "holder": "B",
    "account": "1",
    "RequestRefund.account": None,
    "origin": 1,
    "ended_as": "credit",
    "answer": "credit",
    "failure": "Refused",
} | {
    f"{each}RefundAccount.account": {"kind": "free", "account": "1", "holder": "B"}
    for each in ("Set", "Give")
}
"""A right value of each field that a method needs."""

BAD: Final[dict[str, tuple[Any, ...]]] = {
    "merchant_id": NO_IDS,
    "key_id": ("", *NO_IDS),
    "request_key": ("", *NO_IDS),
    "invoice_id": UNKNOWN,
    "link_id": UNKNOWN,
    "ListLinks.link_id": NO_IDS,
    **dict.fromkeys(OF_EVENTS, ("", *NO_IDS)),
    "ListEvents.invoice_id": NO_IDS,
    "FollowEvents.after_event_id": (-1,),
    "ListTransfers.invoice_id": NO_IDS,
    "ListTransfers.withdraw_uuid": NO_IDS,
    "invoice_ids": (["x"], [ID] * 1001),
    "FindMissingInvoices.invoice_ids": (["x"],),
    "not_invoice_ids": (["x"], [ID] * 1001),
    "deal_ids": (["x"], [ID] * 1001),
    "refund_ids": (["x"], [ID] * 1001),
    "deal_id": UNKNOWN,
    "ListLinePayments.deal_id": NO_IDS,
    "ListLinePayments.after": (-1,),
    "ListDays.after_key": ("x",),
    "FindDealsOfLines.accounts": (["A"] * 101,),
    "ListUnlinkedDeals.accounts": (
        [lines_pb2.ImportedAccount(account="A", first_day="2026-11-01")] * 1001,
        [lines_pb2.ImportedAccount(account="A", first_day="x")],
    ),
    "ListUnlinkedDeals.after_deal_id": NO_IDS,
    "FindDealsOfLines.references": (["A"] * 10_001,),
    "FindDealsOfLines.amounts": (["x"], ["1"] * 1001),
    "GetProof.deal_id": ("", *NO_IDS),
    "requisite_id": UNKNOWN,
    "withdraw_uuid": UNKNOWN,
    "address_id": UNKNOWN,
    "number": (0, -1, 10**15),
    "GetEvent.event_id": (0, -1, 10**12, 2**63 - 1),
    "after_invoice_id": NO_IDS,
    "ListDeals.after_deal_id": NO_IDS,
    "after_requisite_id": NO_IDS,
    "after_link_id": NO_IDS,
    "after_withdraw_uuid": NO_IDS,
    "after_transfer_id": NO_IDS,
    "after_number": (-1,),
    "after_attempt_id": (-1,),
    "limit": (-1, 1001),
    "ListCredits.limit": (0, 1001),
    "ListEventInvoices.limit": (0, 1001),
    "rows": (-1, 1001),
    "page": (0, -(2**63)),
    "per_page": (0, 501),
    "status": (99,),
    "withdrawal_method_id": (99, 0, -(2**31)),
    "order": (9,),
    "stage": (9,),
    "kind": (0, 9),
    "by": (9,),
    "amount": AMOUNTS,
    "ListAllInvoices.amount": FORMS,
    "amount_from": FORMS,
    "amount_to": FORMS,
    "network_fee": AMOUNTS,
    "CreateWithdrawal.amount": (*AMOUNTS, "10.0000001"),
    "RequestWithdrawal.amount": (*AMOUNTS, "10.0000001"),
    "customer_id": ("a\0b",),
    "external_id": ("a\0b",),
    "purpose": ("", "a\0b"),
    "callback_url": ("x" * 2049,),
    "CreateInvoice.metadata": (
        *([{"key": key, "value": "x"}] for key in ("", "k" * 41, "a\0")),
        *([{"key": "a", "value": value}] for value in ("x" * 501, "a\0")),
        [{"key": "a"}, {"key": "a"}],
        [{"key": str(number)} for number in range(21)],
    ),
    "success_url": ("x" * 2049,),
    "fail_url": ("x" * 2049,),
    "sender_name": ("a\nb\0", "\x1b[31mred", "abc\u202egnp", "\u200b"),
    "OpenCustomerAppeal.note": ("a\0b",),
    "OpenCase.note": ("a\0b", "x" * 2001),
    "picture": (b"<svg/>", b"MZ"),
    "ListDeals.account": (" -", "x" * 65),
    "sub_status": ("no such", "\0"),
    "reference": ("7K3M", "\0"),
    "ListAllInvoices.currency_code": ("EURO",),
    "outcome": ("", " ", "a\0b"),
    "payment_method_code": ("x" * 65,),
    "event_type": ("x" * 65,),
    "first_day": ("", "yesterday", "2026-11-31"),
    "last_day": ("", "tomorrow", "2026-10-31", "2027-11-02"),
    "AddRequisite.method_code": ("", "nope"),
    "AddRequisites.method_code": ("", "nope"),
    "CheckRequisites.method_code": ("", "nope"),
    "SetLineRule.method_code": ("", "nope"),
    "deal_most": ("0", "-1", "10.001", *AMOUNTS),
    "day_most": ("9.99", "0", *AMOUNTS),
    "holder": ("", "a\0b"),
    "AddRequisite.account": ("", "a\0b"),
    "max_deals": (-1, 10_001),
    "AddRequisites.requisites": ([], [{"holder": "B", "account": "1"}] * 501),
    "CheckRequisites.requisites": ([], [{"holder": "B", "account": "1"}] * 501),
    "address": ("", "T" * 129, f"{TON_ADDRESS}\0"),
    "ListAllWithdrawals.address": ("T" * 129, f"{TON_ADDRESS}\0"),
    "address_memo": ("a\0b", "m" * 121),
    "name": (" ", "n" * 65),
    "external_tx_id": ("", "x" * 129, "a b", "a\0", "ж", "\n"),
    "ListAllWithdrawals.external_tx_id": ("x" * 129, "a b"),
    "substatus": ("processing", "cancelled_by_user", "FAILED", "\0"),
    "expected_stage": ("no such",),
    "SetWithdrawalMethod.method.code": ("", "USDT TRC20", "M" * 65, "USDT\n"),
    "SetWithdrawalMethod.method.network": ("", "SOLANA", "trc20"),
    "SetWithdrawalMethod.method.name": (" ", "N" * 129, "USDT\0"),
    "SetWithdrawalMethod.method.network_fee": ("-0.000001", "0.0000001", *AMOUNTS),
    # Nothing would be left of 0.5.
    "SetWithdrawalMethod.method.min_amount": ("0.5", "0", "1.0000001", "1000000000000.000001", *AMOUNTS),
    "overdue_seconds": (-1,),
    "older_than_days": (0, -1, 36_501),
    "merchant.client_share": ("", "1.1", "-0.1", "half", "0.1234567"),
    "currency_code": CODES,
    "ListMethodOffers.currency_code": (*NO_CODES, "EU\0"),
    "ListInvoices.currency_code": ("EU\0",),
    "facts": ([{}], [{"status": "INVOICE_STATUS_SUCCESS", "event_id": "x"}]),
    "rate": ("0", "-1", "0.000000001", "1.123456789", "1000000000000", "1" * 5000, *AMOUNTS),
    "expected_source_rate": FORMS,
    "step_seconds": (-1, 59),
    "logo": (b"<svg/>", b"MZ"),
    "GetLogo.logo": ("", "0" * 64, "\0"),
    "currency.code": CODES,
    "currency.name": ("", "  ", "x" * 129, "a\0b", "a\nb", "\u202ename"),
    "currency.symbol": ("", "x" * 9, "\0"),
    "currency.decimals": (-1, 3, 2**31 - 1),
    "currency.min_amount": ("0", "-1", "1.001", "1" * 19, "1" * 5000, *AMOUNTS),
    "currency.max_amount": ("0", "0.5", "1000000000000000000", *AMOUNTS),
    "currency.markup": ("", "-0.1", "1.000001", "0.1234567", "1%"),
    "method.method_code": ("a b", "ä", "x" * 65, "a/b", "a\0", "a\n"),
    "method.currency_code": CODES,
    "method.name": ("", "x" * 129, "a\0b"),
    "method.min_sum": ("0", "-1", "1.001", *AMOUNTS),
    "method.max_sum": ("0", "9.99", "1" * 19, *AMOUNTS),
    "method.payment_minutes": (-1, 0, 1441),
    "method.commission": ("", "-0.1", "1.1", "0.1234567"),
    "method.logo_url": (*LINKS, "https://cdn.example/" + "a" * 2048),
    "method.account_kind": (99,),
    "SetRate.validity": (99,),
    "CreateInvoiceByHand.valid_days": (-1, 91),
    "CreateLink.valid_days": (-1, 91),
    "ListLinks.status": (99,),
    "GetDealMoney.conversion_rate": ("0", "-1", "1.001", *AMOUNTS),
    "ended_as": ("", "keep", "\0"),
    "answer": ("", "keep", "\0"),
    "AnswerCase.text": ("a\0b",),
    "OpenLateCase.line_id": ("", *NO_IDS),
    "LinkRefund.refund_id": NO_IDS,
    "MakeCorrection.invoice_id": ("", *NO_IDS),
    "ListCorrections.invoice_id": NO_IDS,
    "ListCorrections.kind": (9,),
    "after_correction_id": NO_IDS,
    "origin": (0, 9),
    "RequestRefund.reason": ("a\0b",),
    "CreateWithdrawal.reason": ("a\0b", "x" * 501),
    "RequestRefund.expected_amount": FORMS,
    "ListRefunds.invoice_id": NO_IDS,
    "statuses": ([99],),
    "refund_id": UNKNOWN,
    "after_refund_id": (*NO_IDS, ID),
    "SendRefund.bank_reference": ("a\0b",),
    "failure": ("", " ", "a\0b"),
    "ListRefundsOfPage.invoice_id": ("", *NO_IDS),
    "ImportFile.content": (b"", b"x" * (8 * 2**20 + 1)),
    "ImportFile.file_name": ("", " ", "a\0b"),
    "profile": ("{", "[]", "a\0b"),
    "SaveCsvProfile.profile": ("", "{", "[]", "a\0b"),
    "profile_name": ("a b", "no-such"),
    "SaveCsvProfile.name": NO_NAMES,
    "DeleteCsvProfile.name": (*NO_NAMES, "no-such"),
    "encoding": ("unicode_escape",),
    "delimiter": ("ab",),
    "ImportFile.import_id": (*NO_IDS, ID),
    "import_id": UNKNOWN,
    "after_import_id": NO_IDS,
    "line_id": UNKNOWN,
    "line_ids": (["x"], [ID, ""], [ID] * 1001),
    "after_line_id": NO_IDS,
    "ListLines.deal_id": NO_IDS,
    "ListLines.state": (99,),
    "ListLines.amount": FORMS,
    "tier": (99,),
    "FollowPayments.replace_after": (-1,),
    "connector_id": UNKNOWN,
    "key": ("", "x", "a\0b"),
    "silence_seconds": (-1, 59, 2_592_001),
    "CreateConnector.name": NO_NAMES,
    "CreateConnector.accounts": (
        [],
        [{"account": "1", "currency_code": "EUR"}] * 101,
        *([{"account": number, "currency_code": "EUR"}] for number in ("", "Ж", "1" * 65)),
        *([{"account": "1", "currency_code": code}] for code in CODES),
    ),
    "PostLines.lines": ([{}] * 501,),
    "ListPostedLines.source_id": ("x" * 201, "a\0b"),
    "ListPostedLines.account": ("\0",),
    "IgnoreLine.reason": ("", " ", "a\0b"),
    "UseLine.left": FORMS,
    "UseLine.used_for": ("", "x", f"deal:{ID}"),
    "Simulate.step": ("", "win", "a\0b"),
}
ANY: Final = {
    *(
        "ListLines.account",
        "RestoreLine.used_for",
        "ListDays.account",
        "CreateConnector.newest_connector_id",
        "invoice_ref",
        "after_seq",
        "after_event_id",
        "method.method_id",
        "method.logo",
        "expected_sub_status",
    ),
    *(
        "ListDeals.currency_code",
        "GetReport.currency_code",
    ),
    *("GetReport.after_key", "GetReport.after_currency_code", "ListAllWithdrawals.withdrawal_method_id"),
    *(
        "ListRequisites.method_code",
        "GetReport.method_code",
        "GetQuote.method_code",
        "method.transaction_pattern",
    ),
    *("SelectPaymentMethod.method_code", "MarkPaid.deal_id", "RejectDeal.note", "OpenAppeal.note"),
    *("ResolveAppeal.note", "received_amount", "adjusted_amount", "GetRequisite.days", "SendTest.event_id"),
    *("ListRequisiteDeals.after_deal_id", "ListRequisiteDeals.limit", "LinkDeal.lines"),
    *(f"MakeCorrection.{each}" for each in ("merchant_id", "amount", "conversion_rate", "case_number")),
    *(f"MakeCorrection.{each}" for each in ("reason", "evidence", "request_key", "expected_amount")),
    *("RequestRefund.merchant_id", "refund_amount", "case_number", "CheckRefund.merchant_id"),
    *("Simulate.merchant_id", "Simulate.payment_method_code", "Simulate.amount"),
    *("ListRefunds.external_id", "CompleteRefund.bank_reference", "GiveRefundAccount.invoice_id"),
}
"""Fields that take any value, or that are read after the object was found."""

REASONS: Final[dict[str, str]] = {
    "invoice_id": "INVOICE_NOT_FOUND",
    **dict.fromkeys(("ListTransfers.invoice_id", "ListTransfers.withdraw_uuid"), INVALID),
    **dict.fromkeys((*OF_EVENTS, "ListEvents.invoice_id"), INVALID),
    "FindMissingInvoices.invoice_ids": "INVOICE_NOT_FOUND",
    **dict.fromkeys(
        ("ListAllInvoices.after_invoice_id", "ListInvoices.after_invoice_id"), "INVOICE_NOT_FOUND"
    ),
    "deal_id": "DEAL_NOT_FOUND",
    "after_deal_id": "DEAL_NOT_FOUND",
    "requisite_id": "REQUISITE_NOT_FOUND",
    "after_requisite_id": "REQUISITE_NOT_FOUND",
    "withdrawal_method_id": "WITHDRAWAL_METHOD_NOT_FOUND",
    "CreateInvoice.currency_code": "CURRENCY_INVALID",
    "CreateInvoiceByHand.currency_code": "CURRENCY_INVALID",
    "CreateLink.currency_code": "CURRENCY_INVALID",
    "link_id": "LINK_NOT_FOUND",
    "after_link_id": "LINK_NOT_FOUND",
    "ListMethodOffers.currency_code": "CURRENCY_NOT_FOUND",
    "number": "CASE_NOT_FOUND",
    "ImportFile.content": "BANK_FILE_REFUSED",
    **dict.fromkeys(("ListLines.deal_id", "OpenLateCase.line_id", "LinkRefund.refund_id"), INVALID),
    "import_id": "BANK_IMPORT_NOT_FOUND",
    "line_id": "BANK_LINE_NOT_FOUND",
    "connector_id": "API_KEY_INVALID",
    "RevokeConnector.connector_id": "CONNECTOR_NOT_FOUND",
    "key": "API_KEY_INVALID",
    "withdraw_uuid": "WITHDRAWAL_NOT_FOUND",
    "after_withdraw_uuid": "WITHDRAWAL_NOT_FOUND",
    "address_id": "WITHDRAWAL_ADDRESS_NOT_FOUND",
    "GetEvent.event_id": "WEBHOOK_EVENT_NOT_FOUND",
    "GetLogo.logo": "NOT_FOUND",
    "refund_id": "REFUND_NOT_FOUND",
    "after_refund_id": "REFUND_NOT_FOUND",
    **dict.fromkeys(
        ("MakeCorrection.invoice_id", "ListCorrections.invoice_id", "ListRefunds.invoice_id"), INVALID
    ),
}


def of(table: Mapping[str, Any], method: str, field: str) -> Any:
    return table.get(f"{method}.{field}", table.get(field))


def wrong_values(service: str, called: str) -> dict[str, tuple[Any, ...]]:
    """Returns the wrong values of each field of the method, as `outer.inner` for those of what it sets."""
    method, found = method_of(service, called), dict[str, tuple[Any, ...]]()
    fields = {each.name: each for each in method.input_type.fields}
    for outer in fields.keys() & {"method", "currency"}:
        fields |= {f"{outer}.{each.name}": each for each in fields[outer].message_type.fields}
    if service == "catalog" and "merchant" in fields:
        fields["merchant.client_share"] = fields["merchant"].message_type.fields_by_name["client_share"]
    for name, field in fields.items():
        bad = of(BAD, method.name, name)
        if (most := field.GetOptions().Extensions[most_option]) and field.message_type is None:
            letter: Any = b"x" if field.type == FieldDescriptor.TYPE_BYTES else "x"
            bad = (*(bad or ()), letter * (most + 1))
        if not of(dict.fromkeys(ANY, True), method.name, name) and (bad or field.type not in FREE_TYPES):
            assert bad, f"{method.name}.{name}: a row in BAD or ANY"
            found[name] = bad
    return found


@pytest.fixture(scope="module")
def services(stack: Stack) -> Iterator[Services]:
    with ExitStack() as opened:
        yield Services(stack, opened)


@pytest.fixture(scope="module")
def ours(stack: Stack) -> dict[str, Any]:
    requisite = stack.cli("requisites", "list")[0]
    connector = stack.cli("bank", "connectors", "create", "bad-values", "--account", "1:EUR")["connector_id"]
    return {"merchant_id": stack.demo["merchant_id"], "connector_id": connector} | {
        name: requisite[name] for name in ("method_code", "account")
    }


@pytest.mark.parametrize(
    ("service", "called"),
    [(each, called) for each in IN for called in rpcs_of(each).values()],
)
def test_a_wrong_value_is_refused_with_its_documented_reason_and_its_field(
    services: Services, ours: dict[str, Any], service: str, called: str
) -> None:
    method = method_of(service, called)
    right = {name: of(RIGHT | ours, method.name, name) for name in method.input_type.fields_by_name}
    for field, bad in wrong_values(service, called).items():
        outer, _, inner = field.partition(".")
        reason = of(REASONS, method.name, field) or INVALID
        for value in bad:
            request = right | {outer: right[outer] | {inner: value} if inner else value}
            with pytest.raises(Refused) as refused:
                services.call(service, called, **request)
            told = refused.value.reason, refused.value.metadata.get("field")
            assert refused.value.metadata.get("shape") == of(QUERY, method.name, field), field
            assert told == (reason, field if reason == INVALID else None), (field, str(value)[:70])
