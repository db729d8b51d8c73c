"""The timeline of one invoice: what each service stored about it, as one list in the order of time.

It is the proof that a person shows, so it has each fact with its author, and no fact twice: an act that a step of a
deal shows as well is left out. Page and command have these words; nothing of a page is here.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Final

from console.words.acts import author_of, title_of
from console.words.bank import PaidBy, of_bank
from console.words.deals import step_tone, step_words
from console.words.late_money import ANSWERS, ENDS
from console.words.moments import (
    Moment,
    approvals_first,
    both_commissions,
    given,
    of_ledger,
    of_webhooks,
    time,
)
from fiatgate.audit.v1 import audit_pb2
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, withdrawals_pb2
from kit.base import shown
from kit.base.codes import in_groups
from kit.base.groups import account_in_groups
from kit.base.money import amount_text, money_text, percent_of
from kit.base.proto import datetime_from

SERVICES: Final = ("invoices", "withdrawals", "webhooks")
"""The services that know of an invoice, in the order of their moments at the same time."""


def timeline(
    story: invoices_pb2.GetInvoiceStoryResponse,
    transfers: Iterable[withdrawals_pb2.Transfer] = (),
    webhooks: webhooks_pb2.ListInvoiceEventsResponse | None = None,
    *,
    key_name: str = "",
    corrections: corrections_pb2.ListCorrectionsResponse | None = None,
    paid_by: Sequence[PaidBy] = (),
) -> list[Moment]:
    """Returns the moments of an invoice, oldest first.

    key_name     the name of the API key that created the invoice; empty: its id is given
    corrections  of the invoice with their acts: the reasons and authors of transfers
    paid_by      bank lines that paid its deals
    """
    corrected = corrections or corrections_pb2.ListCorrectionsResponse()
    moments = [
        *_of_invoice(story, key_name),
        *(moment for each in story.deals for moment in _of_deal(each, _received(story, each.deal))),
        *_of_acts(story),
        *_of_end(story),
        *_of_case(story),
        *of_bank(paid_by),
        *of_ledger(story.invoice.deal, transfers, corrected),
        *(_act(each) for each in corrected.acts if each.refused or each.act != "correction.make"),
        *(() if webhooks is None else of_webhooks(webhooks)),
    ]
    return approvals_first(sorted(moments, key=lambda moment: (moment.at, SERVICES.index(moment.service))))


def cells(moment: Moment) -> tuple[str, ...]:
    """Returns the moment as a line of CSV, for `COLUMNS`. No text of a merchant or customer begins a line or a fact."""
    at = moment.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    texts = (moment.service, moment.title, moment.by, details_text(moment), moment.note, moment.thing)
    return (at, *map(shown.one_line, texts))


COLUMNS: Final = ("at", "service", "title", "by", "details", "note", "thing")


def details_text(moment: Moment) -> str:
    """Returns the details as one line: `amount 50.90 EUR; order A-17`. A value with a semicolon is quoted."""
    return "; ".join(f"{name} {_quoted(value)}" for name, value in moment.details)


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"' if ";" in value or value.startswith('"') else value


# -- invoices

_FINISHED: Final = {
    invoices_pb2.INVOICE_STATUS_SUCCESS: ("Invoice paid", "good"),
    invoices_pb2.INVOICE_STATUS_FAIL: ("Invoice failed", "bad"),
    invoices_pb2.INVOICE_STATUS_EXPIRED: ("Invoice expired", "bad"),
    invoices_pb2.INVOICE_STATUS_CANCELED: ("Invoice canceled", "bad"),
}


def _of_invoice(story: invoices_pb2.GetInvoiceStoryResponse, key_name: str) -> Iterator[Moment]:
    invoice = story.invoice
    yield Moment(
        at=datetime_from(invoice.created_at),
        title="Invoice created",
        by=_created_by(story, key_name),
        details=given(
            ("amount", money_text(invoice.amount, invoice.currency_code)),
            ("order", invoice.external_id),
            ("customer", invoice.customer_id),
            ("purpose", invoice.purpose),
            ("a method could be chosen until", time(invoice.expires_at)),
            ("webhook to", invoice.callback_url),
        ),
        note=next((act.note for act in _by_hand(story)), ""),
    )
    if story.HasField("opened_at"):
        yield Moment(
            at=datetime_from(story.opened_at), title="Payment page opened for the first time", by="customer"
        )


def _created_by(story: invoices_pb2.GetInvoiceStoryResponse, key_name: str) -> str:
    if story.invoice.link_id:
        return "a customer, by a payment link"
    if story.invoice.key_id:
        return f"API key {key_name or story.invoice.key_id}"
    return next((f"{author_of(act)}, by hand" for act in _by_hand(story)), "a person, by hand")


def _by_hand(story: invoices_pb2.GetInvoiceStoryResponse) -> Iterator[audit_pb2.Act]:
    return (act for act in story.acts if act.act == "invoice.create" and not act.refused)


def _of_end(story: invoices_pb2.GetInvoiceStoryResponse) -> Iterator[Moment]:
    invoice = story.invoice
    if not invoice.HasField("finished_at"):
        return
    title, tone = _FINISHED.get(invoice.status, ("Invoice finished", ""))
    yield Moment(
        at=datetime_from(invoice.finished_at),
        title=title,
        by="" if story.deals else _ended_by(story),
        details=given(("credit due", money_text(invoice.deal.merchant_usdt, "USDT"))),
        tone=tone,
    )


def _ended_by(story: invoices_pb2.GetInvoiceStoryResponse) -> str:
    """Returns the author of the end of an invoice without a deal: the steps of a deal have their own."""
    if story.invoice.status != invoices_pb2.INVOICE_STATUS_CANCELED:
        return "time"
    canceled = (act for act in story.acts if act.act == "invoice.cancel" and not act.refused)
    return next((author_of(act) for act in canceled), "customer")


_PICTURES: Final = {
    invoices_pb2.PROOF_KIND_APPEAL: "Picture sent with the appeal",
    invoices_pb2.PROOF_KIND_CASE: "Picture sent with the late money",
}


def _received(story: invoices_pb2.GetInvoiceStoryResponse, deal: invoices_pb2.Deal) -> str:
    """Returns the amount that came in place of the one to send, by the act of the adjustment; empty: none is known."""
    acts = (act for act in story.acts if act.act == "deal.adjust" and not act.refused)
    changes = (each for act in acts if act.object == f"deal:{deal.deal_id}" for each in act.changes)
    return next((each.after for each in changes if each.field == "received_amount"), "")


def _of_deal(story: invoices_pb2.DealStory, received: str) -> Iterator[Moment]:
    thing = f"deal:{story.deal.deal_id}"
    for step in story.history:
        yield Moment(
            at=datetime_from(step.at),
            title=step_words(step.sub_status),
            by=step.actor,
            details=_step_details(story, step.sub_status, received),
            note=step.note,
            tone=step_tone(step.sub_status),
            thing=thing,
        )
    for proof in story.proofs:
        kind = invoices_pb2.ProofKind.Name(proof.kind).removeprefix("PROOF_KIND_").lower()
        yield Moment(
            at=datetime_from(proof.at),
            title=_PICTURES.get(proof.kind, "Picture sent"),
            by="customer",
            details=[("file", f"{proof.content_type}, {proof.size} bytes")],
            thing=f"proof:{proof.deal_id}/{kind}",
        )


def _step_details(story: invoices_pb2.DealStory, sub_status: str, received: str) -> list[tuple[str, str]]:
    deal, requisite = story.deal, story.requisite
    account = " ".join(account_in_groups(requisite.account))
    match sub_status:
        case "awaiting_payment":
            return given(
                ("method", deal.payment_method_name),
                ("amount to send", money_text(deal.amount_to_send, deal.currency_code)),
                ("account", ", ".join(filter(None, (account, requisite.holder, requisite.bank)))),
                ("reference", in_groups(deal.reference)),
                ("rate", f"{amount_text(deal.conversion_rate)} {deal.currency_code} per USDT"),
                ("rate from", _rate_from(story)),
                ("commission", both_commissions(deal)),
                ("to be paid until", time(deal.expires_at)),
            )
        case "awaiting_confirmation":
            return given(("sender", deal.sender_name))
        case "completed_with_adjustment":
            currency, to_send = deal.currency_code, deal.amount_to_send
            paid = f"{amount_text(deal.adjusted_amount, currency)} of {money_text(deal.invoice_amount, currency)}"
            came = f"{amount_text(received, currency)} of {money_text(to_send, currency)}" if received else ""
            return given(
                ("came", came),
                ("counts as paid", paid),
                ("credit due", money_text(deal.merchant_usdt, "USDT")),
            )
        case "successfully_paid":
            return given(("credit due", money_text(deal.merchant_usdt, "USDT")))
        case _:
            return []


_ORIGINS: Final = {
    catalog_pb2.RATE_ORIGIN_OPERATOR: "an operator",
    catalog_pb2.RATE_ORIGIN_SOURCES: "the median of its sources",
    catalog_pb2.RATE_ORIGIN_ACCEPTED: "the median of its sources, accepted by an operator",
}


def _rate_from(story: invoices_pb2.DealStory) -> str:
    """Returns the origin of the deal's rate: "the median of its sources, 0.9388 (a 0.9380, b 0.9396), taken …"."""
    if not story.HasField("rate_basis"):
        return ""
    basis = story.rate_basis
    answers = ", ".join(
        f"{each.source} {each.rate if each.HasField('rate') else f'failed: {each.error}'}"
        for each in basis.sources
    )
    markup = f", less a markup of {percent_of(basis.markup)} %" if Decimal(basis.markup or 0) else ""
    return (
        f"{_ORIGINS.get(basis.origin, 'catalog')}, {basis.source_rate}{f' ({answers})' if answers else ''}, "
        f"taken {time(basis.taken_at)}{markup}"
    )


def _of_case(story: invoices_pb2.GetInvoiceStoryResponse) -> Iterator[Moment]:
    if not story.HasField("case"):
        return
    case = story.case
    thing = f"case:{case.number}"
    yield Moment(
        at=datetime_from(case.opened_at),
        title="Case of a bank line opened" if case.line_id else "Late money reported",
        by=next((author_of(act) for act in story.acts if act.act == "case.open"), "customer"),
        details=[("case", str(case.number))],
        note=case.note,
        tone="wait",
        thing=thing,
    )
    if case.HasField("merchant_answer"):
        yield Moment(
            at=datetime_from(case.answered_at),
            title=f"Merchant answered: {ANSWERS.get(case.merchant_answer, case.merchant_answer)}",
            by=case.answered_by,
            details=[("case", str(case.number))],
            note=case.merchant_text,
            thing=thing,
        )
    if case.HasField("resolved_at"):
        yield Moment(
            at=datetime_from(case.resolved_at),
            title="Late money answered",
            by=case.actor,
            details=[("case", str(case.number)), ("money", ENDS.get(case.ended_as, case.ended_as))],
            note=case.outcome,
            thing=thing,
        )


# -- acts

_SHOWN_BY_STEPS: Final = frozenset(
    {
        "deal.confirm",
        "deal.reject",
        "deal.appeal",
        "deal.resolve",
        "deal.adjust",
        "case.answer",
        "case.open",
        "case.resolve",
        "invoice.cancel",
        "invoice.create",
    }
)


def _of_acts(story: invoices_pb2.GetInvoiceStoryResponse) -> Iterator[Moment]:
    yield from (_act(act) for act in story.acts if act.refused or act.act not in _SHOWN_BY_STEPS)


def _act(act: audit_pb2.Act) -> Moment:
    title, tone = title_of(act)
    kind, _, id = act.object.partition(":")
    changes = {change.field: change.after for change in act.changes}
    approval = f"approval:{act.service}/{changes['approval']}" if "approval" in changes else ""
    return Moment(
        at=datetime_from(act.at),
        title=title,
        by=author_of(act),
        details=given(("reason", act.refused), ("would do", changes.get("summary", ""))),
        note=act.note,
        tone=tone,
        thing=act.object if kind in ("deal", "case") and id else approval,
        service=act.service,
    )
