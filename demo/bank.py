"""The invented bank: a statement with transfers as customers make them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from typing import Final
from uuid import UUID

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.account_forms import account_key
from kit.base.codes import in_groups

DEALS_MOST: Final = 200
_MANGLED, _HALF, _TWICE, _UNPAID, _WAYS = range(5)


def statement(deals: Iterable[pb.Deal], requisites: Iterable[pb.Requisite], *, now: datetime) -> bytes:
    """Returns a CAMT.053 file with one statement for each account of the deals.

    Most deals are paid; some with a mangled reference, with half of the amount, twice, late or not at all, by their
    ids: so a further file of the same deals adds nothing. Each account also gets a transfer of a stranger.
    """
    accounts = {each.requisite_id: account_key(each.account) for each in requisites}
    entries: dict[tuple[str, str], list[str]] = defaultdict(list)
    for deal in deals:
        if account := accounts.get(deal.requisite_id):
            entries[account, deal.currency_code] += _transfers(deal)
    statements = (
        f"<Stmt><Id>1</Id><Acct><Id><Othr><Id>{account}</Id></Othr></Id><Ccy>{currency}</Ccy></Acct>"
        + "".join([*lines, _entry("12", currency, now, "Rent", ("Sam Stranger", "DEMO0"))])
        + "</Stmt>"
        for (account, currency), lines in entries.items()
    )
    content = "".join(statements)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">'
        f"<BkToCstmrStmt><GrpHdr><MsgId>DEMO</MsgId></GrpHdr>{content}</BkToCstmrStmt></Document>"
    ).encode()


def _transfers(deal: pb.Deal) -> list[str]:
    way = UUID(deal.deal_id).int % (2 * _WAYS)
    if deal.HasField("mark_paid_at"):
        way = _WAYS if way in (_HALF, _UNPAID) else way
    elif deal.status in (pb.DEAL_STATUS_CANCELED, pb.DEAL_STATUS_FAILED, pb.DEAL_STATUS_EXPIRED):
        way = _UNPAID if way > _TWICE else way
    if way == _UNPAID:
        return []
    amount = Decimal(deal.amount_to_send)
    reference = in_groups(deal.reference) if deal.takes_reference else ""
    text = f"Order {reference}"
    if way == _MANGLED:
        text = f"svwz+order:{reference[:3]} / {reference[3:]}".lower().replace("0", "o")
    number = UUID(deal.deal_id).int % 10**9
    entry = _entry(
        f"{max(amount // 2, Decimal(1)) if way == _HALF else amount:f}",
        deal.currency_code,
        deal.created_at.ToDatetime(UTC),
        text,
        (deal.sender_name or f"Customer {number % 1000}", f"DEMO{number}"),
    )
    return [entry] * (2 if way == _TWICE else 1)


def _entry(amount: str, currency: str, day: datetime, text: str, sender: tuple[str, str]) -> str:
    name, account = sender
    return (
        f'<Ntry><Amt Ccy="{currency}">{amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>'
        f"<BookgDt><Dt>{day.date()}</Dt></BookgDt><NtryDtls><TxDtls><RltdPties><Dbtr><Pty><Nm>{escape(name)}</Nm>"
        f"</Pty></Dbtr><DbtrAcct><Id><Othr><Id>{account}</Id></Othr></Id></DbtrAcct></RltdPties>"
        f"<RmtInf><Ustrd>{escape(text)}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"
    )
