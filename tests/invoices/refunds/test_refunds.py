"""Refunds: what they take, who may do what, and nothing twice."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from deploy.local.waiting import wait_until
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.db.queues import Waiting, waiting
from kit.rpc.errors import Refused
from services.invoices.operations import cases
from services.withdrawals.domain import (
    ACCOUNT_WAITS_DAYS,
    REFUND_REACHED_FROM,
    CorrectionKind,
    RefundOrigin,
    RefundStatus,
)
from services.withdrawals.operations import corrections, creating, fields, refund_steps, refunds
from services.withdrawals.operations.corrections import Asked as Correcting
from services.withdrawals.operations.refunds import Asked
from services.withdrawals.rpc import refunds as messages
from services.withdrawals.store import ledger
from services.withdrawals.store import refunds as store
from services.withdrawals.store.queues import QUEUES
from services.withdrawals.store.views import CorrectionView, RefundView
from tests.invoices.conftest import Surroundings, make_merchant
from tests.invoices.refunds.conftest import (
    ACCOUNT,
    CANCELED,
    FAILED,
    IBAN,
    PAGE,
    PROGRAM,
    READY,
    SENT,
    SUCCEEDED,
    WAITING,
    Till,
)
from tests.support.acting import ANN, BEN, CID, acting, refusal, requested
from tests.withdrawals.conftest import TRC20, TRON_ADDRESS, House, all_at_once
from tests.withdrawals.test_checks import problems

# -- what it takes


def test_a_full_refund_takes_what_came_at_the_locked_rate_and_its_ends_pay_or_return_it(till: Till) -> None:
    invoice = till.invoice()
    made = till.ask(invoice, account=None)
    assert (made.refund_amount, made.amount, made.status) == (
        Decimal("205.00"),
        Decimal("222.826087"),
        WAITING,
    )
    assert till.money() == ("989.130434", "222.826087")
    for step in (READY, SENT, SUCCEEDED):
        made = acting(CID, till.step(step, made))
    assert (made.bank_reference, made.finished_at) == (f"BR-{made.id}", till.house.clock.now())
    assert till.money() == ("989.130434", "0.000000")
    for end in (FAILED, CANCELED):
        again = till.ask(till.invoice())
        acting(CID, till.step(end, again))
        assert till.money()[1] == "0.000000"
    assert till.money()[0] == "1413.043476"
    assert problems(till.house) == []


def test_the_commission_goes_back_when_the_category_says_so(till: Till, house: House) -> None:
    invoice = till.invoice()
    deal = house.deps.invoices.deal_money(invoice_id=uuid.UUID(invoice))  # type: ignore[union-attr]  # set by the fixture
    returning = replace(deal, refunds_return_commission=True)
    asked = Asked(
        merchant_id="", invoice_id=invoice, origin=RefundOrigin.CREDITED, refund_amount="", case_number=0
    )
    with house.deps.db.transaction() as tx:
        quoted = refunds._quoted(tx, asked, returning).amount
    assert quoted == Decimal("211.956521")


def test_parts_are_refunded_until_nothing_is_left(till: Till) -> None:
    invoice = till.invoice()
    till.ask(invoice, "150.00")
    too_much = refusal(till.ask, invoice, "55.01")
    assert (too_much.reason, dict(too_much.metadata)) == (
        "REFUND_INVALID",
        {"refundable": "55.00", "currency": "EUR"},
    )
    canceled = till.ask(invoice, "55.00")
    assert refusal(till.ask, invoice).reason == "REFUND_INVALID"
    acting(CID, till.step(CANCELED, canceled))
    assert till.ask(invoice).refund_amount == Decimal("55.00")


@pytest.mark.parametrize(
    ("amount", "field"),
    [("0", "refund_amount"), ("-1", "refund_amount"), ("1.001", "refund_amount"), ("x", "refund_amount")],
)
def test_an_amount_that_is_none_is_refused(till: Till, amount: str, field: str) -> None:
    refused = refusal(till.ask, till.invoice(), amount)
    assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", field)


def test_what_was_not_paid_or_was_taken_back_is_not_refunded(till: Till) -> None:
    assert refusal(till.ask, till.invoice(paid=False)).reason == "REFUND_INVALID"
    others, member = str(till.world.create().id), till.member()
    assert refusal(acting, member, till.asking(others)).reason == "INVOICE_NOT_FOUND"
    deal = till.world.with_deal()
    assert refusal(till.ask, str(deal.invoice_id)).reason == "INVOICE_NOT_FOUND"
    assert refusal(till.ask, str(new_id())).reason == "INVOICE_NOT_FOUND"
    invoice = till.invoice()
    till.ask(invoice, "5.00")
    till.reverse(invoice, "206")  # 5.00 EUR took 5.434783
    assert refusal(till.ask, invoice, "5.00").reason == "REFUND_INVALID"


def test_a_reversal_takes_no_more_than_refunds_have_left(till: Till) -> None:
    invoice = till.invoice()
    till.ask(invoice, "5.00")
    assert refusal(acting, ANN, till.reversing(invoice, "206.521739")).reason == "CORRECTION_INVALID"
    till.reverse(invoice, "206.521738")


def test_it_takes_only_what_is_available(till: Till) -> None:
    invoice = till.invoice()
    creating_ = partial(withdraw, till, "1000")
    acting(PROGRAM, creating_)
    refused = refusal(till.ask, invoice)
    assert (refused.reason, dict(refused.metadata)) == (
        "INSUFFICIENT_BALANCE",
        {
            "available": "211.956521",
            "requested": "222.826087",
            "refundable": "194.99",
            "currency": "EUR",
        },
    )
    assert refusal(till.ask, invoice, "195.00").reason == "INSUFFICIENT_BALANCE"
    assert refusal(till.ask, invoice, "20.00", expected_amount="21.000000").reason == "EDIT_CONFLICT"
    assert till.ask(invoice, "20.00", expected_amount="21.739131").amount == Decimal("21.739131")


def withdraw(till: Till, amount: str) -> object:
    return creating.create_withdrawal(
        till.house.deps,
        merchant_id=till.merchant_id,
        withdrawal_method_id=TRC20,
        address=TRON_ADDRESS,
        address_memo=None,
        amount=amount,
        request_key=str(new_id()),
    )


def test_an_external_id_makes_one_refund(till: Till) -> None:
    invoice = till.invoice()
    made = till.ask(invoice, "20.00", external_id="r-1")
    assert till.ask(invoice, "20", external_id="r-1") == made
    waiting = till.ask(invoice, "30.00", external_id="r-2", account=None)
    given = acting(CID, till.step(READY, waiting))
    assert till.ask(invoice, "30.00", external_id="r-2", account=None) == given
    others: list[dict[str, Any]] = [
        {"reason": "torn"},
        {"amount": "21.00"},
        {"account": replace(ACCOUNT, holder="Max")},
    ]
    for changes in others:
        refused = refusal(till.ask, invoice, **({"amount": "20.00", "external_id": "r-1"} | changes))
        assert (refused.reason, refused.metadata["refund_id"]) == ("REFUND_EXISTS", str(made.id))


# -- who does what


def test_merchants_return_what_was_credited_and_operators_what_was_not(till: Till) -> None:
    invoice, canceled = till.invoice(), till.invoice(paid=False)
    case = till.case(canceled)
    late: dict[str, Any] = {"origin": RefundOrigin.LATE, "amount": "205.00", "case_number": case}
    for actor in (PROGRAM, till.member()):
        assert refusal(acting, actor, till.asking(canceled, **late)).reason == "REFUND_INVALID"
    assert refusal(acting, ANN, till.asking(invoice)).reason == "REFUND_INVALID"
    returned = acting(ANN, till.asking(canceled, **late, merchant_id="", account=None))
    assert (returned.amount, returned.merchant_id) == (Decimal(0), uuid.UUID(till.merchant_id))
    for step in (READY, CANCELED):
        assert refusal(acting, till.member(), till.step(step, returned)).reason == "REFUND_INVALID"
    assert acting(ANN, till.step(READY, returned)).status is READY
    assert refusal(acting, ANN, till.asking(invoice, **late)).reason == "REFUND_INVALID"
    surplus: dict[str, Any] = {"origin": RefundOrigin.SURPLUS, "amount": "5.00"}
    assert acting(ANN, till.asking(invoice, **surplus)).amount == 0
    assert refusal(acting, ANN, till.asking(canceled, **surplus)).reason == "REFUND_INVALID"
    assert till.money() == ("1211.956521", "0.000000")
    assert problems(till.house) == []


def test_an_operator_names_no_account_of_a_merchants_refund(till: Till) -> None:
    made = till.ask(till.invoice(), "20.00", account=None)
    assert refusal(acting, ANN, till.step(READY, made)).reason == "REFUND_INVALID"
    stranger = till.member(str(uuid.uuid4()))
    for target in (READY, CANCELED):
        assert refusal(acting, stranger, till.step(target, made)).reason == "REFUND_NOT_FOUND"


def test_the_customer_gives_the_account_once_and_only_of_this_invoice(till: Till) -> None:
    invoice = till.invoice()
    made = till.ask(invoice, "20.00", account=None)

    def give(account: str, of: str = invoice) -> RefundView:
        given = fields.account(kind="iban", account=account, holder=" Mia Muster ", bank="")
        call = partial(refund_steps.give_refund_account, till.house.deps, invoice_id=of)
        return acting(PAGE, partial(call, refund_id=str(made.id), account=given))

    assert refusal(give, "DE89370400440532013001").metadata["field"] == "account"
    assert refusal(give, IBAN, of=till.invoice()).reason == "REFUND_NOT_FOUND"
    given = give("DE89 3704 0044 0532 0130 00")
    assert (given.status, given.account, given.account_by_customer) == (READY, IBAN, True)
    assert give(IBAN) == given
    assert refusal(give, "GB82WEST12345698765432").reason == "REFUND_STATE_CONFLICT"


def test_only_operators_see_whole_accounts(till: Till) -> None:
    made, deps = till.ask(till.invoice(), "20.00"), till.house.deps
    asked = pb.GetRefundRequest(refund_id=str(made.id))

    def seen(actor: Actor) -> pb.GetRefundResponse:
        return acting(actor, lambda: messages.get_refund(deps, asked))

    assert seen(ANN).refund.account.account == IBAN
    assert seen(ANN).acts[0].actor.kind == "api"
    of_member = seen(till.member())
    assert (of_member.refund.account.account, of_member.refund.account.holder) == ("···3000", "Mia Muster")
    assert IBAN not in str(of_member)
    assert IBAN not in str(acting(PROGRAM, lambda: messages.refund_to_message(made)))
    of_page = acting(PAGE, lambda: messages.refund_to_message(made, of_page=True))
    assert (of_page.account.account, of_page.account.holder) == ("···3000", "")
    assert refusal(seen, till.member(str(uuid.uuid4()))).reason == "REFUND_NOT_FOUND"


# -- steps


@pytest.mark.parametrize("target", [READY, SENT, SUCCEEDED, FAILED, CANCELED])
@pytest.mark.parametrize("status", list(RefundStatus))
def test_each_step_is_taken_from_the_states_of_the_table_only(
    till: Till, status: RefundStatus, target: RefundStatus
) -> None:
    refund, other = till.reached(status), {READY: {"account": replace(ACCOUNT, holder="Max")}}
    call = till.step(target, refund, **other.get(target, {}))
    if status in REFUND_REACHED_FROM[target] or (status is target and target not in (READY, SENT)):
        assert acting(CID, call).status is target
    else:
        refused = refusal(acting, CID, call)
        assert (refused.reason, refused.metadata["status"]) == ("REFUND_STATE_CONFLICT", status)
    assert problems(till.house) == []


def test_one_is_completed_only_with_a_reference(till: Till) -> None:
    sent = acting(CID, till.step(SENT, till.reached(READY), bank_reference=""))
    assert (
        refusal(acting, CID, till.step(SUCCEEDED, sent, bank_reference="")).metadata["field"]
        == "bank_reference"
    )
    assert acting(CID, till.step(SUCCEEDED, sent, bank_reference="BR-2")).bank_reference == "BR-2"


def test_one_is_completed_with_the_reference_that_it_was_sent_with(till: Till) -> None:
    sent = acting(CID, till.step(SENT, till.reached(READY)))
    refused = refusal(acting, CID, till.step(SUCCEEDED, sent, bank_reference=new_id().hex))
    assert refused.metadata["field"] == "bank_reference" and f"BR-{sent.id}" in str(refused)
    assert acting(CID, till.step(SUCCEEDED, sent, bank_reference="")).bank_reference == f"BR-{sent.id}"


def test_a_payment_of_the_bank_pays_one_refund(till: Till) -> None:
    paid, reference = till.reached(READY), new_id().hex
    acting(CID, till.step(SENT, paid, bank_reference=reference))

    def refused(target: RefundStatus, refund: RefundView) -> bool:
        spelled = f" {reference.upper()[:4]}- {reference.upper()[4:]}".replace("A", "Ａ")
        call = till.step(target, refund, bank_reference=spelled)
        found = refusal(acting, CID, call)
        return found.metadata["field"] == "bank_reference" and str(paid.id) in str(found)

    sent = acting(CID, till.step(SENT, till.reached(READY), bank_reference=""))
    assert refused(SENT, till.reached(READY)) and refused(SUCCEEDED, sent)
    acting(CID, till.step(FAILED, paid))  # it paid nothing, so the reference was mistyped
    acting(CID, till.step(SUCCEEDED, sent, bank_reference=reference))
    other = acting(CID, till.step(SENT, till.reached(READY)))
    assert str(sent.id) in str(refusal(acting, CID, till.step(SUCCEEDED, other, bank_reference=reference)))


def test_a_large_one_is_sent_by_two_who_see_account_and_amount(till: Till) -> None:
    settings = till.house.deps.settings.model_copy(update={"four_eyes_usdt": Decimal("21.739131")})
    till = replace(till, house=replace(till.house, deps=replace(till.house.deps, settings=settings)))
    made = till.reached(READY)
    asked = requested(ANN, till.step(SENT, made))
    (listed,) = till.approvals().of(f"refund:{made.id}")
    assert listed.summary == (
        f"Send 20.00 EUR to iban “{IBAN}” of “Mia Muster”, reference “BR-{made.id}”: a refund of invoice "
        f"{made.invoice_id}, which takes 21.739131 USDT of merchant {till.merchant_id}"
    )
    assert refusal(till.approvals().approve, ANN, asked).reason == "OTHER_PERSON_REQUIRED"
    till.approvals().approve(BEN, asked)
    assert refusal(acting, ANN, till.step(SENT, made)).metadata["status"] == "sent"
    taken = till.step(SENT, till.reached(READY), bank_reference=f"BR-{made.id}")
    assert refusal(acting, ANN, taken).metadata["field"] == "bank_reference"
    canceled = till.reached(READY)
    asked = requested(ANN, till.step(SENT, canceled))
    acting(till.member(), till.step(CANCELED, canceled))
    assert refusal(till.approvals().approve, BEN, asked).reason == "APPROVAL_STATE_CONFLICT"
    late = returning(till, till.invoice(paid=False), amount="20.01", merchant_id="")
    requested(ANN, till.step(SENT, acting(ANN, late)))


def test_more_than_the_customer_was_told_to_send_is_returned_by_two(till: Till) -> None:
    for amount in ("205.00", "205.01"):
        call = returning(till, till.invoice(paid=False), amount=amount, merchant_id="")
        made = acting(ANN, call)
        if amount == "205.00":
            assert acting(ANN, till.step(SENT, made)).status is SENT
        else:
            till.approvals().approve(BEN, requested(ANN, till.step(SENT, made)))
    surplus = till.asking(till.invoice(), "205.01", origin=RefundOrigin.SURPLUS, merchant_id="")
    requested(ANN, till.step(SENT, acting(ANN, surplus)))


def test_the_sender_reads_that_a_correction_of_the_invoice_waits(till: Till) -> None:
    made = till.reached(READY)
    asked = requested(ANN, till.reversing(str(made.invoice_id), "1"))
    story = partial(refunds.get_refund, till.house.deps, refund_id=str(made.id))
    assert str(acting(ANN, story).pending_correction_id) == asked
    till.approvals().reject(BEN, asked)
    assert acting(ANN, story).pending_correction_id is None


def test_each_open_refund_stands_in_a_queue_with_its_age(till: Till) -> None:
    def found() -> dict[str, Waiting]:
        with till.house.deps.db.autocommit() as connection:
            return {each.name: each for each in waiting(connection, QUEUES, now=till.house.clock.now())}

    names, before = ("refunds_ready", "refunds_sent", "refunds_waiting"), found()
    for each in (WAITING, READY, SENT):
        till.reached(each)
    assert [found()[name].count - before[name].count for name in names] == [1, 1, 0]
    assert found()["refunds_sent"].newest_at == till.house.clock.now()
    till.house.clock.advance(days=ACCOUNT_WAITS_DAYS, seconds=1)
    assert found()["refunds_waiting"].count > before["refunds_waiting"].count


def test_a_return_that_failed_waits_until_the_money_goes_another_way(till: Till) -> None:
    def failed() -> int:
        with till.house.deps.db.autocommit() as connection:
            found = waiting(connection, QUEUES, now=till.house.clock.now())
        return next(each.count for each in found if each.name == "returns_failed")

    before, invoice = failed(), till.invoice()
    over: dict[str, Any] = {"origin": RefundOrigin.SURPLUS, "amount": "5.00"}
    for end, more in ((FAILED, 1), (CANCELED, 1), (SUCCEEDED, 0)):
        made = acting(ANN, till.asking(invoice, **over))
        assert failed() == before, "it is under way"
        for each in (SENT, end) if end is SUCCEEDED else (end,):
            made = acting(ANN, till.step(each, made))
        assert failed() == before + more
    till.reached(FAILED)
    assert failed() == before, "what was credited is the merchant's again"


# -- at once


def counted(outcomes: list[Any]) -> tuple[int, set[str]]:
    """The calls that were done, and the reasons of the others."""
    refused = {each.reason for each in outcomes if isinstance(each, Refused)}
    return sum(not isinstance(each, Refused) for each in outcomes), refused


def test_of_full_refunds_at_once_one_is_made(till: Till) -> None:
    invoice = till.invoice()
    calls = [partial(acting, PROGRAM, till.asking(invoice)) for _ in range(20)]
    assert counted(all_at_once(calls)) == (1, {"REFUND_INVALID"})
    assert till.money() == ("989.130434", "222.826087")


def test_all_that_is_left_is_refunded_beside_parts_that_others_refund_at_once(till: Till) -> None:
    for _ in range(3):
        invoice = till.invoice()
        calls = [partial(acting, PROGRAM, till.asking(invoice, each)) for each in ("5.00", "") * 10]
        outcomes = all_at_once(calls)
        assert counted(outcomes)[1] <= {"REFUND_INVALID"}, "the caller expected no amount"
        made = [each.refund_amount for each in outcomes if isinstance(each, RefundView)]
        assert sum(made) == Decimal("205.00")
        for each in outcomes:
            if isinstance(each, RefundView):
                acting(CID, till.step(CANCELED, each))


def test_of_equal_requests_at_once_all_get_the_one_refund(till: Till) -> None:
    invoice = till.invoice()
    calls = [partial(acting, PROGRAM, till.asking(invoice, external_id="r-1")) for _ in range(20)]
    assert len({each.id for each in all_at_once(calls) if isinstance(each, RefundView)}) == 1
    assert till.money()[1] == "222.826087"


def test_refunds_beside_withdrawals_take_nothing_that_is_not_there(till: Till) -> None:
    invoices = [till.invoice() for _ in range(10)]
    withdraw(till, "2900")  # 219.56521 are left
    refunding: list[Callable[[], Any]] = [
        partial(acting, PROGRAM, till.asking(each, "200.00")) for each in invoices
    ]
    withdrawing = [partial(acting, PROGRAM, partial(withdraw, till, "217")) for _ in invoices]
    assert counted(all_at_once([*refunding, *withdrawing])) == (1, {"INSUFFICIENT_BALANCE"})
    assert problems(till.house) == []


def test_of_many_refunds_one_is_completed_with_the_same_reference(
    till: Till, house: House, surroundings: Surroundings
) -> None:
    reference, sent = new_id().hex, []
    for _ in range(4):
        merchant, key_id = make_merchant(surroundings.merchants)
        house.credit("1000", merchant.merchant_id)
        own = replace(till, merchant=merchant, key_id=key_id)
        sent += [acting(CID, own.step(SENT, own.reached(READY), bank_reference="")) for _ in range(5)]
    calls = [partial(acting, CID, till.step(SUCCEEDED, each, bank_reference=reference)) for each in sent]
    outcomes = all_at_once(calls)
    assert counted(outcomes) == (1, {"VALIDATION_ERROR"})
    (done,) = [each for each in outcomes if isinstance(each, RefundView)]
    assert all(str(done.id) in str(each) for each in outcomes if isinstance(each, Refused))
    assert problems(till.house) == []


def test_sending_beside_canceling_has_one_outcome(till: Till) -> None:
    for _ in range(3):
        refund, before = till.reached(READY), till.money()[0]
        calls = [partial(acting, CID, till.step(each, refund)) for each in (SENT, CANCELED) * 10]
        done, refused = counted(all_at_once(calls))
        assert refused == {"REFUND_STATE_CONFLICT"}
        with till.house.deps.db.transaction() as tx:
            now = store.refund(tx, refund.id)
        assert now is not None
        assert done == (1 if now.status is SENT else 10), "one alone reads that the money is to be paid"
        returned = Decimal(till.money()[0]) - Decimal(before)
        assert returned == (refund.amount if now.status is CANCELED else 0)
        acting(CID, till.step(FAILED if now.status is SENT else CANCELED, now))


def crediting(till: Till, invoice_id: str, rate: str = "", case: int = 0) -> Callable[[], CorrectionView]:
    asked = Correcting(
        kind=CorrectionKind.LATE_CREDIT,
        merchant_id="",
        invoice_id=invoice_id,
        amount="",
        received_amount="205.00",
        conversion_rate=rate,
        case_number=case,
    )
    texts = {"reason": "late", "evidence": "BR-8", "request_key": str(new_id()), "expected_amount": ""}
    return partial(corrections.make_correction, till.house.deps, asked, **texts)


def late_credit(till: Till, invoice_id: str, rate: str = "") -> None:
    wanted = crediting(till, invoice_id, rate)
    if rate:
        till.approvals().approve(BEN, requested(ANN, wanted))
    else:
        acting(CID, wanted)


def returning(till: Till, invoice_id: str, **given: Any) -> Callable[[], RefundView]:
    case = given.pop("case_number", 0) or till.case(invoice_id)
    return till.asking(
        invoice_id, **{"amount": "10.00", "origin": RefundOrigin.LATE, "case_number": case, **given}
    )


def test_late_money_that_was_credited_is_refunded_at_the_rate_of_its_credit(till: Till) -> None:
    invoice = till.invoice(paid=False)
    late_credit(till, invoice, "0.46")
    made = till.ask(invoice)
    assert (made.refund_amount, made.amount, made.conversion_rate) == (
        Decimal("205.00"),
        Decimal("445.652174"),
        Decimal("0.46"),
    )


def test_late_money_is_credited_or_returned_once(till: Till) -> None:
    first, second = till.invoice(paid=False), till.invoice(paid=False)
    late_credit(till, first)
    assert refusal(acting, CID, returning(till, first)).reason == "REFUND_INVALID"
    assert refusal(late_credit, till, first).reason == "CORRECTION_INVALID"
    made = acting(CID, returning(till, second))
    assert refusal(late_credit, till, second).reason == "CORRECTION_INVALID"
    acting(CID, till.step(CANCELED, made))
    late_credit(till, second)


def test_money_of_an_open_invoice_is_not_late(till: Till) -> None:
    deal = till.world.with_deal(merchant=till.merchant, key_id=till.key_id, amount="200.00")
    late = till.asking(str(deal.invoice_id), "10.00", origin=RefundOrigin.LATE, case_number=7)
    assert refusal(acting, CID, late).reason == "REFUND_INVALID"


def test_late_money_goes_where_the_merchant_has_answered_or_the_case_ended(till: Till) -> None:
    credited, returned, ended, policy = (till.invoice(paid=False) for _ in range(4))
    asked = requested(ANN, crediting(till, returned, "0.46"))
    for invoice, answer in ((credited, "credit"), (returned, "return")):
        cases.answer_case(till.world.deps, number=till.case(invoice), answer=answer, text="")
    cases.resolve_case(till.world.deps, number=till.case(ended), outcome="Back", ended_as="return")
    assert refusal(acting, CID, returning(till, credited)).reason == "REFUND_INVALID"
    assert refusal(till.approvals().approve, BEN, asked).reason == "CORRECTION_INVALID"
    for invoice in (returned, ended):
        assert refusal(late_credit, till, invoice).reason == "CORRECTION_INVALID"
        assert acting(CID, returning(till, invoice)).amount == 0
    late_credit(till, credited)
    till.case(policy)
    late_credit(till, policy)


def test_the_case_of_late_money_is_that_of_its_invoice(till: Till) -> None:
    invoice, other = till.invoice(paid=False), till.case(till.invoice(paid=False))
    number = till.case(invoice)
    for each in (invoice, till.invoice(paid=False)):
        for step in (returning(till, each, case_number=other), crediting(till, each, case=other)):
            assert refusal(acting, CID, step).metadata["field"] == "case_number"
    assert acting(CID, crediting(till, invoice, case=number)).case_number == number


def test_a_case_that_sql_answered_moves_no_money(till: Till) -> None:
    invoice = till.invoice(paid=False)
    answer = "merchant_answer = 'return', merchant_text = '', answered_by = 'x', answered_at = now()"
    with till.world.deps.db.transaction() as tx:
        tx.connection().exec_driver_sql(f"UPDATE cases SET {answer} WHERE number = {till.case(invoice)}")
    for step in (crediting(till, invoice), returning(till, invoice)):
        assert refusal(acting, CID, step).reason == "NOT_DECIDED"


def test_a_late_credit_that_was_wholly_taken_back_leaves_its_money_open(till: Till) -> None:
    credited, returned = till.invoice(paid=False), till.invoice(paid=False)
    for invoice in (credited, returned):
        late_credit(till, invoice)
        till.reverse(invoice, "100")
        assert refusal(late_credit, till, invoice).reason == "CORRECTION_INVALID"
        till.reverse(invoice, "")
    late_credit(till, credited)
    assert refusal(late_credit, till, credited).reason == "CORRECTION_INVALID"
    assert acting(CID, returning(till, returned)).amount == 0


def test_a_refund_that_waits_for_its_turn_gets_its_id_then(till: Till) -> None:
    invoice = till.invoice()
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as pool:
        with till.house.deps.db.transaction() as tx:
            ledger.locked(tx, uuid.UUID(till.merchant_id))
            asked = pool.submit(till.ask, invoice, "10.00")
            wait_until(lambda: bool(till.house.execute(waiting)), "the request to wait", timeout_seconds=15)
            earlier = new_id()
        assert asked.result().id > earlier
