"""The words of a timeline, made of the messages of the services."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from console.words.bank import PaidBy
from console.words.moments import Moment
from console.words.timeline import cells, details_text, timeline
from fiatgate.audit.v1 import audit_pb2
from fiatgate.bank.v1 import bank_pb2
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import lines_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, withdrawals_pb2
from kit.base.proto import timestamp_from

START: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ANN: Final = audit_pb2.Actor(kind="person", name="ann@example.com", surface="desk")
BEN: Final = audit_pb2.Actor(kind="cli", name="root@bastion", on_behalf_of="ben@example.com")


def at(minutes: float) -> Any:
    return timestamp_from(START + timedelta(minutes=minutes))


def step(minutes: float, sub_status: str, actor: str, note: str = "") -> pb.DealTransition:
    return pb.DealTransition(at=at(minutes), sub_status=sub_status, actor=actor, note=note)


def act(minutes: float, name: str, actor: audit_pb2.Actor, **values: Any) -> audit_pb2.Act:
    return audit_pb2.Act(at=at(minutes), act=name, actor=actor, service="invoices", **values)


def adjusted() -> pb.GetInvoiceStoryResponse:
    """An invoice of 100 EUR of which 90 were paid: an appeal, ended by two people."""
    deal = pb.Deal(
        deal_id="d",
        sub_status="completed_with_adjustment",
        payment_method_name="SEPA",
        currency_code="EUR",
        amount_fiat="92.25",
        amount_to_send="102.50",
        invoice_amount="100.00",
        adjusted_amount="90.00",
        conversion_rate="0.92",
        client_percent="2.50",
        merchant_percent="2.50",
        merchant_usdt="95.380434",
        reference="7K3M9QTX",
        created_at=at(2),
        expires_at=at(17),
    )
    basis = catalog_pb2.RateBasis(
        origin=catalog_pb2.RATE_ORIGIN_ACCEPTED,
        source_rate="0.93877551",
        markup="0.02",
        taken_at=at(0),
        sources=[
            catalog_pb2.SourceQuote(source="north", rate="0.9388"),
            catalog_pb2.SourceQuote(source="south", error="HTTP 503"),
        ],
    )
    summary = audit_pb2.Change(field="summary", after="End the appeal with 90.00 EUR paid")
    return pb.GetInvoiceStoryResponse(
        invoice=pb.Invoice(
            invoice_id="i",
            key_id="k",
            amount="100.00",
            currency_code="EUR",
            external_id="order-17",
            customer_id="zoe",
            status=pb.INVOICE_STATUS_SUCCESS,
            created_at=at(0),
            expires_at=at(30),
            finished_at=at(9),
            deal=deal,
        ),
        opened_at=at(1),
        deals=[
            pb.DealStory(
                deal=deal,
                requisite=pb.Requisite(account="DE89370400440532013000", holder="A. Holder"),
                history=[
                    step(2, "awaiting_payment", "customer"),
                    step(3, "awaiting_confirmation", "customer"),
                    step(4, "opened_by_customer", "customer", "I paid 90"),
                    step(9, "completed_with_adjustment", "cli:root@bastion for ben@example.com", "Seen"),
                ],
                proofs=[
                    pb.Proof(
                        deal_id="d", kind=pb.PROOF_KIND_APPEAL, content_type="image/png", size=7, at=at(4)
                    )
                ],
                rate_basis=basis,
            )
        ],
        acts=[
            act(6, "deal.adjust", ANN, object="deal:d", refused="NOT_PERMITTED"),
            act(7, "approval.request", ANN, object="deal:d", changes=[summary], note="90 came"),
            act(9.0001, "approval.approve", BEN, object="deal:d"),
            act(9, "deal.adjust", BEN, object="deal:d"),
        ],
    )


def titled(moments: list[Moment]) -> dict[str, Moment]:
    return {each.title: each for each in moments}


def test_an_appeal_that_two_people_ended_has_each_step_once_in_order() -> None:
    moments = timeline(adjusted(), key_name="till (fg_3kX9…)")
    assert [(each.title, each.by) for each in moments] == [
        ("Invoice created", "API key till (fg_3kX9…)"),
        ("Payment page opened for the first time", "customer"),
        ("Payment method chosen", "customer"),
        ("Marked paid", "customer"),
        ("Appeal opened", "customer"),
        ("Picture sent with the appeal", "customer"),
        ("Refused: deal adjust", "ann@example.com"),
        ("Second person asked", "ann@example.com"),
        ("Second person approved", "cli:root@bastion for ben@example.com"),
        ("Payment confirmed with a lower amount", "cli:root@bastion for ben@example.com"),
        ("Invoice paid", ""),
    ]
    found = titled(moments)
    chosen = dict(found["Payment method chosen"].details)
    assert chosen["rate from"] == (
        "the median of its sources, accepted by an operator, 0.93877551 (north 0.9388, south failed: HTTP 503), "
        "taken 2026-03-01 12:00:00 UTC, less a markup of 2 %"
    )
    assert chosen["amount to send"] == "102.50 EUR", "the amount before the adjustment"
    assert chosen["reference"] == "7K3M 9QTX"
    assert chosen["account"] == "DE89 3704 0044 0532 0130 00, A. Holder"
    request = found["Second person asked"]
    assert (details_text(request), request.note) == (
        "would do End the appeal with 90.00 EUR paid",
        "90 came",
    )
    assert details_text(found["Refused: deal adjust"]) == "reason NOT_PERMITTED"
    assert found["Picture sent with the appeal"].thing == "proof:d/appeal"


def test_credit_and_webhooks_stand_at_their_time_with_commission_balance_and_answers() -> None:
    transfer = withdrawals_pb2.Transfer(
        transfer_id="t",
        kind=withdrawals_pb2.TRANSFER_KIND_CREDIT,
        amount="95.380434",
        created_at=at(9.5),
        after=withdrawals_pb2.MerchantBalance(available="195.380434", reserved="0.000000"),
    )
    attempts = [
        webhooks_pb2.Attempt(
            try_number=1,
            status=webhooks_pb2.ATTEMPT_STATUS_FAILURE,
            error_message="timeout",
            created_at=at(10),
        ),
        webhooks_pb2.Attempt(
            try_number=2,
            trigger=webhooks_pb2.ATTEMPT_TRIGGER_MANUAL,
            status=webhooks_pb2.ATTEMPT_STATUS_FAILURE,
            http_status=500,
            duration_ms=35,
            response_body="no\nroom",
            created_at=at(12),
        ),
    ]
    event = webhooks_pb2.WebhookEvent(
        event_id=7,
        event_type="invoice.adjusted",
        status=webhooks_pb2.EVENT_STATUS_DEAD,
        callback_url="https://shop.example/hook",
        request_payload=b'{"status":"success"}',
        created_at=at(9.5),
        updated_at=at(13),
        attempts=attempts,
    )
    resent = audit_pb2.Act(at=at(11), act="event.resend", object="event:7", actor=ANN)
    answer = webhooks_pb2.ListInvoiceEventsResponse(events=[event], acts=[resent])
    moments = timeline(adjusted(), [transfer], answer)[-6:]
    assert [(each.service, each.title, details_text(each)) for each in moments] == [
        (
            "withdrawals",
            "Credited to the merchant",
            "credit 95.380434 USDT; after the merchant’s commission 2.50 %, 2.445652 USDT; "
            "balance after it 195.380434 USDT; transfer t",
        ),
        (
            "webhooks",
            "Webhook made",
            'event invoice.adjusted; to https://shop.example/hook; sent {"status": "success"}',
        ),
        ("webhooks", "Webhook attempt 1 failed", "fault timeout"),
        ("webhooks", "Webhook resent", ""),
        ("webhooks", "Webhook attempt 2 by hand failed", "answer HTTP 500; took 35 ms; body no room"),
        ("webhooks", "Webhook given up", ""),
    ]
    assert (moments[3].by, moments[3].thing) == ("ann@example.com", "webhook:7")
    assert cells(moments[3])[:4] == (
        "2026-03-01T12:11:00.000000Z",
        "webhooks",
        "Webhook resent",
        "ann@example.com",
    )


def test_an_end_without_a_deal_names_its_author() -> None:
    story = pb.GetInvoiceStoryResponse(
        invoice=pb.Invoice(status=pb.INVOICE_STATUS_CANCELED, created_at=at(0), finished_at=at(1))
    )
    assert timeline(story)[-1].by == "customer"
    story.acts.append(act(1, "invoice.cancel", ANN, object="invoice:i"))
    assert timeline(story)[-1].by == "ann@example.com"
    story.invoice.status = pb.INVOICE_STATUS_EXPIRED
    assert timeline(story)[-1].by == "time"


def test_a_correction_stands_at_its_time_with_its_reason_two_authors_and_what_is_owed() -> None:
    after = withdrawals_pb2.MerchantBalance(available="0.000000", reserved="0.000000", owed="5.000000")
    owed = withdrawals_pb2.Transfer(
        transfer_id="t",
        kind=withdrawals_pb2.TRANSFER_KIND_OWED,
        correction_id="c",
        amount="5.000000",
        created_at=at(20),
        after=after,
    )
    made = corrections_pb2.Correction(correction_id="c", reason="Not paid", evidence="BR-7")
    acts = [
        act(19, "approval.request", ANN, object="invoice:i"),
        act(20, "correction.make", BEN, object="correction:c"),
        act(20.0001, "approval.approve", BEN, object="invoice:i"),
    ]
    corrections = corrections_pb2.ListCorrectionsResponse(corrections=[made], acts=acts)
    *_, asked, approved, last = timeline(adjusted(), [owed], corrections=corrections)
    ben = "cli:root@bastion for ben@example.com"
    assert [(each.title, each.by) for each in (asked, approved, last)] == [
        ("Second person asked", "ann@example.com"),
        ("Second person approved", ben),
        ("Became a debt", ben),
    ]
    assert last.note == "Not paid"
    assert details_text(last) == (
        "amount 5.000000 USDT; evidence BR-7; balance after it 0.000000 USDT; owed after it 5.000000 USDT; transfer t"
    )


def test_a_bank_line_that_paid_stands_at_its_time_and_leads_to_its_page() -> None:
    payment = lines_pb2.LinePayment(line_id="l", amount="92.25", line_amount="100.00", paid_at=at(9.2))
    line = bank_pb2.Line(booked_on="2026-03-01", counterparty_name="Zoe; X")
    last = timeline(adjusted(), paid_by=[PaidBy(payment, line, "EUR")])[-1]
    assert (last.title, last.thing) == ("Paid 92.25 EUR by bank line of 100.00 EUR", "bank:l")
    assert details_text(last) == 'booked 2026-03-01; from "Zoe; X"'
    payment.amount = "100.00"
    silent = timeline(adjusted(), paid_by=[PaidBy(payment, bank_pb2.Line(), "EUR")])[-1]
    assert (silent.title, silent.details) == ("Paid by bank line of 100.00 EUR", [])
