"""Every RPC and every reason it can refuse with, over gRPC."""

import base64
import secrets
import uuid
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.proto import datetime_from
from kit.rpc.errors import Refused
from tests.support.databases import past_all_rules
from tests.withdrawals.conftest import TON, TON_ADDRESS, TRC20, TRON_ADDRESS, House, all_at_once

NOBODY = str(uuid.UUID(int=7))


def refusal(call: Any, *args: Any, **kwargs: Any) -> tuple[str, dict[str, str]]:
    with pytest.raises(Refused) as refused:
        call(*args, **kwargs)
    return refused.value.reason, dict(refused.value.metadata)


def listed(house: House, merchant_id: str, **values: Any) -> pb.ListWithdrawalsResponse:
    request: dict[str, Any] = {"merchant_id": merchant_id, "page": 1, "per_page": 20}
    return house.stub.ListWithdrawals(pb.ListWithdrawalsRequest(**(request | values)))


# -- creating


def test_a_withdrawal_reserves_its_amount(house: House) -> None:
    merchant = house.credit("100")
    made = house.withdraw(merchant, "30.5")
    assert made.withdraw_uuid
    assert uuid.UUID(made.withdraw_uuid).version == 7
    assert (made.amount, made.network_fee, made.amount_to_receive) == ("30.500000", "1.000000", "29.500000")
    assert made.status == pb.WITHDRAWAL_STATUS_PENDING
    for absent in ("substatus", "external_tx_id", "processed_at", "address_memo"):
        assert not made.HasField(absent)
    assert datetime_from(made.created_at) == datetime_from(made.updated_at) == house.clock.now()
    assert house.balance(merchant) == ("69.500000", "30.500000", "100.000000", "0.000000")
    assert house.get(made) == made


def test_the_same_request_key_answers_with_the_same_withdrawal(house: House) -> None:
    merchant, key = house.credit("100"), str(uuid.uuid4())
    made = house.withdraw(merchant, "10", request_key=key)
    house.complete(made)
    again = house.withdraw(merchant, "10.0", request_key=key.upper())
    assert again == house.get(made)
    assert house.balance(merchant) == ("90.000000", "0.000000", "100.000000", "10.000000")


@pytest.mark.parametrize(
    "other",
    [
        {"amount": "11"},
        {"address": "T9yED5xMV5ARV98BexN97aLZ1UUq7eKSxm"},
        {"withdrawal_method_id": TON, "address": TON_ADDRESS},
        {"merchant_id": NOBODY},
        {"address_memo": "memo"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_request_key_with_other_values_is_refused(house: House, other: dict[str, Any]) -> None:
    merchant, key = house.credit("100"), str(uuid.uuid4())
    house.withdraw(merchant, request_key=key)
    values = {"merchant_id": merchant, "amount": "10", "request_key": key} | other
    assert refusal(house.withdraw, **values) == ("VALIDATION_ERROR", {"field": "request_key"})


@pytest.mark.parametrize(
    ("values", "reason", "metadata"),
    [
        ({"withdrawal_method_id": 99}, "WITHDRAWAL_METHOD_NOT_FOUND", {}),
        ({"withdrawal_method_id": 0}, "WITHDRAWAL_METHOD_NOT_FOUND", {}),
        ({"withdrawal_method_id": -(2**31)}, "WITHDRAWAL_METHOD_NOT_FOUND", {}),
        ({"address": TON_ADDRESS}, "WITHDRAWAL_ADDRESS_INVALID", {"network": "TRC20"}),
        ({"address_memo": "7"}, "VALIDATION_ERROR", {"field": "address_memo"}),
        ({"address": TRON_ADDRESS[:-1]}, "WITHDRAWAL_ADDRESS_INVALID", {"network": "TRC20"}),
        ({"amount": "4.999999"}, "WITHDRAWAL_AMOUNT_INVALID", {"minimum": "5.000000"}),
        ({"amount": "0"}, "WITHDRAWAL_AMOUNT_INVALID", {"minimum": "5.000000"}),
        ({"amount": "-10"}, "WITHDRAWAL_AMOUNT_INVALID", {"minimum": "5.000000"}),
        (
            {"amount": "9" * 40},
            "WITHDRAWAL_AMOUNT_INVALID",
            {"maximum": "1000000000000.000000"},
        ),
        (
            {"amount": "100.000001"},
            "INSUFFICIENT_BALANCE",
            {"available": "100.000000", "requested": "100.000001"},
        ),
        (
            {"merchant_id": NOBODY},
            "INSUFFICIENT_BALANCE",
            {"available": "0.000000", "requested": "10.000000"},
        ),
    ],
)
def test_a_withdrawal_that_cannot_be_is_refused_with_its_reason(
    house: House, values: dict[str, Any], reason: str, metadata: dict[str, str]
) -> None:
    merchant = house.credit("100")
    request = {"merchant_id": merchant, "amount": "10"} | values
    assert refusal(house.withdraw, **request) == (reason, metadata)
    assert house.balance(merchant) == ("100.000000", "0.000000", "100.000000", "0.000000")


def test_a_memo_goes_along_where_the_network_knows_one(house: House) -> None:
    merchant = house.credit("100")
    ton: dict[str, Any] = {"withdrawal_method_id": TON, "address": TON_ADDRESS}
    assert house.withdraw(merchant, **ton, address_memo="order 7 ✓").address_memo == "order 7 ✓"
    assert not house.withdraw(merchant, **ton, address_memo="").HasField("address_memo")


def test_a_method_switched_off_takes_no_new_withdrawal(house: House) -> None:
    merchant, key = house.credit("100"), str(uuid.uuid4())
    bep20: dict[str, Any] = {
        "withdrawal_method_id": 4,
        "address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    }
    made = house.withdraw(merchant, **bep20, request_key=key)
    house.execute("UPDATE withdrawal_methods SET enabled = false WHERE id = 4")
    assert refusal(house.withdraw, merchant, **bep20)[0] == "WITHDRAWAL_METHOD_NOT_FOUND"
    assert house.withdraw(merchant, **bep20, request_key=key) == made


def test_methods_are_listed_by_id(house: House) -> None:
    methods = house.stub.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest()).methods
    assert [method.method_id for method in methods] == [1, 2, 3, 4, 5]
    assert {"TRC20", "ERC20", "TON"} <= {method.network for method in methods}
    assert [method.network for method in methods if method.memo_allowed] == ["TON"]
    assert (methods[0].code, methods[0].network_fee, methods[0].min_amount) == (
        "USDT-TRC20",
        "1.000000",
        "5.000000",
    )


# -- the life of a withdrawal


def test_a_withdrawal_is_processed_and_completed(house: House) -> None:
    merchant = house.credit("100")
    made = house.withdraw(merchant, "30")
    house.clock.advance(minutes=1)
    processing = house.process(made)
    assert (processing.status, processing.substatus) == (pb.WITHDRAWAL_STATUS_PENDING, "processing")
    assert datetime_from(processing.updated_at) - datetime_from(made.updated_at) == timedelta(minutes=1)
    assert not processing.HasField("processed_at")
    house.clock.advance(minutes=1)
    done = house.complete(made, "a1b2c3")
    assert (done.status, done.external_tx_id) == (pb.WITHDRAWAL_STATUS_SUCCESS, "a1b2c3")
    assert not done.HasField("substatus")
    assert datetime_from(done.processed_at) == datetime_from(done.updated_at) == house.clock.now()
    assert house.balance(merchant) == ("70.000000", "0.000000", "100.000000", "30.000000")


@pytest.mark.parametrize("processing", [False, True])
@pytest.mark.parametrize(
    ("given", "substatus"),
    [("", "failed"), ("failed", "failed"), ("invalid_address", "invalid_address"), ("unknown", "unknown")],
)
def test_a_failed_withdrawal_gives_the_money_back(
    house: House, given: str, substatus: str, processing: bool
) -> None:
    merchant = house.credit("100")
    made = house.withdraw(merchant, "30")
    if processing:
        house.process(made)
    failed = house.fail(made, given)
    assert (failed.status, failed.substatus) == (pb.WITHDRAWAL_STATUS_FAILED, substatus)
    assert failed.HasField("processed_at")
    assert house.balance(merchant) == ("100.000000", "0.000000", "100.000000", "0.000000")


@pytest.mark.parametrize(
    ("by_user", "substatus"), [(True, "cancelled_by_user"), (False, "cancelled_by_admin")]
)
def test_a_cancelled_withdrawal_gives_the_money_back(house: House, by_user: bool, substatus: str) -> None:
    merchant = house.credit("100")
    cancelled = house.cancel(house.withdraw(merchant, "30"), by_user=by_user)
    assert (cancelled.status, cancelled.substatus) == (pb.WITHDRAWAL_STATUS_CANCELLED, substatus)
    assert house.balance(merchant) == ("100.000000", "0.000000", "100.000000", "0.000000")


def test_once_it_is_being_sent_only_the_operator_cancels(house: House) -> None:
    made = house.process(house.withdraw(house.credit("100")))
    conflict = ("WITHDRAWAL_STATE_CONFLICT", {"status": "pending", "substatus": "processing"})
    assert refusal(house.cancel, made, by_user=True) == conflict
    assert house.cancel(made, by_user=False).substatus == "cancelled_by_admin"


STEPS: dict[str, Any] = {
    "process": lambda house, made: house.process(made),
    "complete": lambda house, made: house.complete(
        made, uuid.uuid5(uuid.NAMESPACE_OID, made.withdraw_uuid).hex
    ),
    "fail": lambda house, made: house.fail(made),
    "fail as unknown": lambda house, made: house.fail(made, "unknown"),
    "cancel": lambda house, made: house.cancel(made),
    "cancel by user": lambda house, made: house.cancel(made, by_user=True),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_repeated_step_answers_the_same_and_moves_nothing(house: House, step: str) -> None:
    merchant = house.credit("100")
    made = house.withdraw(merchant, "30")
    once, balance = STEPS[step](house, made), house.balance(merchant)
    house.clock.advance(minutes=1)
    assert STEPS[step](house, made) == once
    assert house.balance(merchant) == balance


@pytest.mark.parametrize("final", [name for name in STEPS if name != "process"])
def test_a_final_status_absorbs_every_other_step(house: House, final: str) -> None:
    merchant = house.credit("100")
    made = house.withdraw(merchant, "30")
    done, balance = STEPS[final](house, made), house.balance(merchant)
    for step in STEPS.keys() - {final}:
        reason, metadata = refusal(STEPS[step], house, made)
        assert reason == "WITHDRAWAL_STATE_CONFLICT"
        assert metadata["substatus"] == done.substatus
    assert house.get(made) == done
    assert house.balance(merchant) == balance


def test_a_second_transaction_for_one_withdrawal_is_a_conflict(house: House) -> None:
    made = house.withdraw(house.credit("100"))
    house.complete(made, "first")
    reason, metadata = refusal(house.complete, made, "second")
    assert (reason, metadata) == ("WITHDRAWAL_STATE_CONFLICT", {"status": "success", "substatus": ""})
    assert house.get(made).external_tx_id == "first"


def test_one_transaction_pays_one_withdrawal_of_a_network(house: House) -> None:
    merchant = house.credit("100")
    house.complete(house.withdraw(merchant), "shared")
    second = house.withdraw(merchant)
    assert refusal(house.complete, second, "shared") == ("VALIDATION_ERROR", {"field": "external_tx_id"})
    assert house.get(second).status == pb.WITHDRAWAL_STATUS_PENDING
    assert house.balance(merchant)[1] == "10.000000"
    elsewhere = house.withdraw(merchant, withdrawal_method_id=TON, address=TON_ADDRESS)
    assert house.complete(elsewhere, "shared").status == pb.WITHDRAWAL_STATUS_SUCCESS


def written_as(hash: str, form: str) -> str:
    raw = bytes.fromhex(hash)
    return {
        "small": hash,
        "capitals": hash.upper(),
        "0x": f"0x{hash}",
        "base64": base64.b64encode(raw).decode(),
        "base64 for URLs": base64.urlsafe_b64encode(raw).decode(),
    }[form]


def two_for(house: House, method_id: int) -> list[pb.Withdrawal]:
    merchant, to = house.credit("100"), {TON: TON_ADDRESS, TRC20: TRON_ADDRESS}[method_id]
    return [house.withdraw(merchant, withdrawal_method_id=method_id, address=to) for _ in range(2)]


@pytest.mark.parametrize(
    ("method_id", "one", "other"),
    [
        (TRC20, "small", "capitals"),
        (TRC20, "capitals", "0x"),
        (TON, "capitals", "base64"),
        (TON, "base64 for URLs", "small"),
    ],
)
def test_a_transaction_is_the_same_in_every_form(house: House, method_id: int, one: str, other: str) -> None:
    first, second = two_for(house, method_id)
    hash = secrets.token_hex(32)
    done = house.complete(first, written_as(hash, one))
    assert house.complete(first, written_as(hash, other)) == done
    taken = ("VALIDATION_ERROR", {"field": "external_tx_id"})
    assert refusal(house.complete, second, written_as(hash, other)) == taken
    assert house.balance(first.merchant_id)[1] == "10.000000"


@pytest.mark.parametrize(("one", "other"), [("Order-SAME", "order-same"), ("9F2c61a4", "0x9f2C61A4")])
def test_marks_that_differ_in_case_or_0x_only_are_one(house: House, one: str, other: str) -> None:
    first, second = two_for(house, TRC20)
    assert house.complete(first, one).external_tx_id == one
    assert house.complete(first, other).external_tx_id == one
    assert refusal(house.complete, second, other) == ("VALIDATION_ERROR", {"field": "external_tx_id"})


def test_of_completions_at_one_time_by_writings_of_one_mark_one_wins(house: House) -> None:
    merchant = house.credit("100")
    marks = ["pay", "Pay", "pAy", "paY", "0xpay", "0xPay", "0xpAy", "0XPAY"]
    made = [house.withdraw(merchant) for _ in marks]
    done = all_at_once([partial(house.complete, *each) for each in zip(made, marks, strict=True)])
    refusals = [each.reason for each in done if isinstance(each, Refused)]
    assert refusals == ["VALIDATION_ERROR"] * (len(marks) - 1)


@pytest.mark.parametrize("typed", ["capitals", "base64"])
def test_a_transaction_stored_in_another_form_pays_no_second_withdrawal(house: House, typed: str) -> None:
    old, new = two_for(house, TON)
    hash = secrets.token_hex(32)
    house.complete(old, hash)
    stored = written_as(hash, typed)
    house.execute(
        "UPDATE withdrawals SET external_tx_id = %s WHERE id = %s",
        *(stored, old.withdraw_uuid),
        url=past_all_rules(house.deps.settings.database_url),
    )
    assert refusal(house.complete, new, hash) == ("VALIDATION_ERROR", {"field": "external_tx_id"})
    assert house.complete(old, hash).external_tx_id == stored


@pytest.mark.parametrize(("column", "sane"), [("merchant_available", 90), ("merchant_reserved", 10)])
def test_nothing_is_withdrawn_from_a_balance_that_is_no_number(house: House, column: str, sane: int) -> None:
    merchant = house.credit("100")
    house.withdraw(merchant)
    by_sql = past_all_rules(house.deps.settings.database_url)
    set_balance = "UPDATE accounts SET balance = %s WHERE merchant_id = %s AND kind = %s RETURNING id"
    ((check,),) = house.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'ck_accounts_bounds'"
    )
    house.execute("ALTER TABLE accounts DROP CONSTRAINT ck_accounts_bounds", url=by_sql)
    try:
        assert house.execute(set_balance, "NaN", merchant, column, url=by_sql)
        assert refusal(house.withdraw, merchant) == (
            "INSUFFICIENT_BALANCE",
            {"available": "0.000000", "requested": "10.000000"},
        )
    finally:
        house.execute(set_balance, sane, merchant, column, url=by_sql)
        house.execute(f"ALTER TABLE accounts ADD CONSTRAINT ck_accounts_bounds {check}", url=by_sql)


# -- reading


def test_a_merchants_withdrawals_are_listed_page_by_page(house: House) -> None:
    merchant = house.credit("100")
    made = []
    for _ in range(5):
        made.append(house.withdraw(merchant))
        house.clock.advance(seconds=1)
    pages = [listed(house, merchant, page=page, per_page=2) for page in (1, 2, 3, 4)]
    assert [withdrawal for page in pages for withdrawal in page.withdrawals] == made[::-1]
    assert [len(page.withdrawals) for page in pages] == [2, 2, 1, 0]
    assert {page.total for page in pages} == {5}
    oldest_first = listed(house, merchant, order=pb.SORT_ORDER_ASC)
    assert list(oldest_first.withdrawals) == made
    assert list(listed(house, merchant, order=pb.SORT_ORDER_DESC).withdrawals) == made[::-1]


def test_a_list_can_be_of_one_status(house: House) -> None:
    merchant = house.credit("100")
    paid, failed = house.withdraw(merchant), house.withdraw(merchant)
    paid, failed = house.complete(paid), house.fail(failed)
    waiting = [house.process(house.withdraw(merchant)), house.withdraw(merchant)]
    found = {status: listed(house, merchant, status=status) for status in (1, 2, 3)}
    assert [list(page.withdrawals) for page in found.values()] == [waiting[::-1], [paid], [failed]]
    assert [page.total for page in found.values()] == [2, 1, 1]
    cancelled = pb.WITHDRAWAL_STATUS_CANCELLED
    assert refusal(listed, house, merchant, status=cancelled) == ("WITHDRAWALS_NOT_FOUND", {})


def test_a_page_far_beyond_the_last_is_empty(house: House) -> None:
    merchant = house.credit("100")
    house.withdraw(merchant)
    page = listed(house, merchant, page=2**63 - 1, per_page=500)
    assert (page.total, list(page.withdrawals)) == (1, [])


def test_operators_see_the_newest_withdrawals_of_all_merchants(house: House) -> None:
    first, second = (house.withdraw(house.credit("100")) for _ in range(2))
    second = house.process(second)

    def found(**values: Any) -> list[pb.Withdrawal]:
        return list(house.stub.ListAllWithdrawals(pb.ListAllWithdrawalsRequest(**values)).withdrawals)

    assert found()[:2] == [second, first]
    assert found(limit=1) == [second]
    assert found(merchant_id=first.merchant_id) == [first]
    assert found(status=pb.WITHDRAWAL_STATUS_PENDING, limit=2) == [second, first]
    assert found(merchant_id=first.merchant_id, status=pb.WITHDRAWAL_STATUS_FAILED) == []


def test_a_merchant_never_seen_has_zeros(house: House) -> None:
    assert house.balance(str(uuid.uuid4())) == ("0.000000",) * 4


def test_credits_are_listed_in_the_order_of_their_invoices(house: House) -> None:
    invoices = sorted([uuid.uuid4(), uuid.uuid4(), new_id(), new_id()])
    merchants = [house.credit(f"{number}.5", invoice_id=id) for number, id in enumerate(invoices)]

    def page(after: str, limit: int) -> list[pb.Credit]:
        request = pb.ListCreditsRequest(after_invoice_id=after, limit=limit)
        return list(house.stub.ListCredits(request).credits)

    seen: list[pb.Credit] = []
    while more := page(seen[-1].invoice_id if seen else "", 3):
        seen += more
    assert [credit.invoice_id for credit in seen] == sorted({credit.invoice_id for credit in seen})
    mine = [credit for credit in seen if credit.merchant_id in merchants]
    assert mine == [
        pb.Credit(invoice_id=str(id), merchant_id=merchant, amount=f"{number}.500000")
        for number, (id, merchant) in enumerate(zip(invoices, merchants, strict=True))
    ]


def test_the_books_are_right_after_all_of_that(house: House) -> None:
    report = house.check()
    assert list(report.problems) == []
    assert report.sum == "0.000000"
    assert report.transfers > 0
    assert report.accounts > 3
