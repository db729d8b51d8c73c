"""`fiatgate verify` names every change made behind the services' backs; their own roles may make few of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg2.errors
import pytest

from tests.cli.command_line import Fiatgate, run
from tests.cli.tampering import Backup, Shop, Tampering, as_the_service, opened
from tests.support.receiver import Receiver
from tests.support.stack import Stack

_DEAL = "UPDATE deals SET {} WHERE id = %(sold_deal)s"
_INVOICE = "UPDATE invoices SET {} WHERE id = %({})s"
_EVENT = "UPDATE events SET {} WHERE invoice_id = %(sold)s"
_STEP = "(SELECT max(id) FROM deal_transitions WHERE deal_id = %(sold_deal)s)"
_FLIP = "finished_at = now(), event_id = gen_random_uuid()"


def of_invoices(name: str, statement: str, of: str, *names: str, by_service: bool = False) -> Tampering:
    return Tampering(name, "invoices", statement, of, names, by_service)


def of_withdrawals(name: str, statement: str, of: str, *names: str, by_service: bool = False) -> Tampering:
    return Tampering(name, "withdrawals", statement, of, names, by_service)


def of_webhooks(name: str, statement: str, of: str, *names: str, by_service: bool = False) -> Tampering:
    return Tampering(name, "webhooks", statement, of, names, by_service)


TAMPERINGS = [
    # -- invoices
    of_invoices(
        "the amount of a paid one", _INVOICE.format("amount = 3.33", "sold"), "sold", "finished, but"
    ),
    of_invoices("the amount of one that waits", _INVOICE.format("amount = 1", "waiting"), "waiting"),
    of_invoices(
        "where its webhook goes",
        _INVOICE.format("callback_url = 'https://evil.example'", "waiting"),
        "waiting",
    ),
    of_invoices(
        "whose it is",
        _INVOICE.format("merchant_id = gen_random_uuid()", "sold"),
        "sold deal",
        "merchant_id is",
    ),
    of_invoices(
        "a rejected one a success",
        _INVOICE.format("status = 'success'", "rejected"),
        "rejected",
        "status is success",
    ),
    of_invoices(
        "a paid one a failure",
        _INVOICE.format("status = 'fail'", "sold"),
        "sold",
        "status is fail",
    ),
    of_invoices(
        "one that waits a success",
        _INVOICE.format(f"status = 'success', {_FLIP}", "waiting"),
        "waiting",
        "no signed fact",
        by_service=True,
    ),
    of_invoices(
        "one with an open deal a success",
        _INVOICE.format(f"status = 'success', {_FLIP}", "open"),
        "open",
        "status is success",
        by_service=True,
    ),
    of_invoices(
        "a paid one open again",
        _INVOICE.format("status = 'pending', finished_at = NULL, event_id = NULL", "sold"),
        "sold",
        "status is pending",
    ),
    of_invoices("no deal", _INVOICE.format("deal_id = NULL", "sold"), "sold", "deal_id is"),
    of_invoices(
        "another's deal",
        _INVOICE.format("deal_id = %(open_deal)s", "waiting"),
        "waiting",
        "deal_id is",
        by_service=True,
    ),
    of_invoices("a paid one deleted", "DELETE FROM invoices WHERE id = %(sold)s", "sold", "unknown invoice"),
    of_invoices(
        "one canceled without a method deleted",
        "DELETE FROM invoices WHERE id = %(canceled)s",
        "canceled",
    ),
    # -- deals
    of_invoices("amount_fiat", _DEAL.format("amount_fiat = 33.33"), "sold deal", "amount_fiat is 33.33"),
    of_invoices(
        "a rate with the credit that follows from it",
        _DEAL.format(
            "conversion_rate = 0.10,"
            " merchant_usdt = div(invoice_amount * (100 - merchant_percent) * 1000000, 10) / 1000000"
        ),
        "sold deal",
        "terms is not",
    ),
    of_invoices("the credit", _DEAL.format("merchant_usdt = 3000"), "sold deal", "merchant_usdt is 3000"),
    of_invoices(
        "the merchant's commission",
        _DEAL.format("merchant_percent = 0"),
        "sold deal",
        "terms is not",
    ),
    of_invoices(
        "the amount in deal and invoice",
        f"WITH of_invoice AS ({_INVOICE.format('amount = 3.33', 'sold')}) {_DEAL.format('invoice_amount = 3.33')}",
        "sold deal",
        "terms is not",
    ),
    of_invoices(
        "another adjustment",
        "UPDATE deals SET adjusted_amount = 1 WHERE id = %(adjusted_deal)s",
        "adjusted deal",
        "adjusted_amount is 1",
    ),
    of_invoices(
        "a rejected one completed",
        "UPDATE deals SET status = 'completed', sub_status = 'successfully_paid', merchant_usdt = 5"
        " WHERE id = %(rejected_deal)s",
        "rejected deal",
        "status is completed",
    ),
    of_invoices(
        "an open one completed",
        "UPDATE deals SET status = 'completed', sub_status = 'successfully_paid', merchant_usdt = 5,"
        " finished_at = now() WHERE id = %(open_deal)s",
        "open deal",
        "act is none",
        by_service=True,
    ),
    of_invoices(
        "the account",
        _DEAL.format(
            "requisite_id = (SELECT id FROM requisites WHERE method_code <> deals.method_code LIMIT 1)"
        ),
        "sold deal",
        "requisite_id is",
    ),
    of_invoices(
        "a deal of its own deleted",
        "DELETE FROM deals WHERE id = %(rejected_deal)s",
        "rejected deal",
        "row is deleted",
    ),
    # -- history
    of_invoices(
        "a step rewritten",
        f"UPDATE deal_transitions SET actor = 'x' WHERE id = {_STEP}",
        "sold deal",
    ),
    of_invoices(
        "the last step deleted",
        f"DELETE FROM deal_transitions WHERE id = {_STEP}",
        "sold deal",
    ),
    of_invoices(
        "a step in the middle deleted",
        "DELETE FROM deal_transitions WHERE deal_id = %(adjusted_deal)s AND status = 'appeal'",
        "adjusted deal",
    ),
    # -- accounts, cases
    of_invoices(
        "open_deals",
        "UPDATE requisites SET open_deals = open_deals + 1 WHERE id = %(open_account)s",
        "open account",
        "open_deals is",
        by_service=True,
    ),
    of_invoices(
        "whose account it is",
        "UPDATE requisites SET account = 'GB33BUKB20201555555555' WHERE id = %(open_account)s",
        "open account",
        "account is GB33BUKB20201555555555",
    ),
    of_invoices(
        "a case's note",
        "UPDATE cases SET note = 'nothing' WHERE invoice_id = %(late)s",
        "case",
    ),
    # -- withdrawals
    of_withdrawals(
        "where it goes",
        "UPDATE withdrawals SET address = 'TEvil' WHERE id = %(pending)s",
        "pending",
        "address is TEvil",
    ),
    of_withdrawals(
        "its fee",
        "UPDATE withdrawals SET network_fee = 0 WHERE id = %(pending)s",
        "pending",
        "network_fee is 0",
    ),
    of_withdrawals(
        "its transaction",
        "UPDATE withdrawals SET external_tx_id = 'x' WHERE id = %(paid)s",
        "paid",
        "external_tx_id is x",
    ),
    of_withdrawals(
        "its amount", "UPDATE withdrawals SET amount = 5 WHERE id = %(pending)s", "pending", "amount is 5"
    ),
    of_withdrawals(
        "one that waits paid",
        "UPDATE withdrawals SET status = 'success', external_tx_id = 'x', processed_at = now() WHERE id = %(pending)s",
        "pending",
        "missing",
        by_service=True,
    ),
    of_withdrawals(
        "one that failed waits",
        "UPDATE withdrawals SET status = 'pending', substatus = NULL, processed_at = NULL WHERE id = %(failed)s",
        "failed",
        "status is pending",
    ),
    of_withdrawals("one deleted", "DELETE FROM withdrawals WHERE id = %(paid)s", "paid", "row is deleted"),
    of_withdrawals(
        "a credit",
        "UPDATE transfers SET amount = 3000 WHERE reference = 'invoice:' || %(sold)s",
        "sold",
        "3000.000000 USDT credited",
    ),
    of_withdrawals(
        "a credit deleted",
        "DELETE FROM transfers WHERE reference = 'invoice:' || %(sold)s",
        "sold",
        "never credited",
    ),
    of_withdrawals(
        "a credit of an unpaid invoice",
        "INSERT INTO transfers SELECT gen_random_uuid(), 'invoice:' || %(waiting)s, debit_account, credit_account, 7,"
        " created_at FROM transfers WHERE reference = 'invoice:' || %(sold)s",
        "waiting",
        "although it is no success",
        by_service=True,
    ),
    of_withdrawals(
        "a balance",
        "UPDATE accounts SET balance = balance + 1 WHERE merchant_id = %(merchant)s AND kind = 'merchant_available'",
        "",
        "its transfers add up to",
    ),
    of_withdrawals("a method deleted", "DELETE FROM withdrawal_methods WHERE id = 1", "method"),
    # -- webhooks
    of_webhooks(
        "a payload",
        _EVENT.format(
            "payload = convert_to(replace(convert_from(payload, 'UTF8'), 'success', 'fail'), 'UTF8')"
        ),
        "sold",
        "payload status is fail",
    ),
    of_webhooks("a payload of something else", _EVENT.format("payload = 'x'"), "sold", "payload is x"),
    of_webhooks(
        "where it goes",
        _EVENT.format("callback_url = 'https://evil.example'"),
        "sold",
        "callback_url is https://evil",
    ),
    of_webhooks("whose key signs", _EVENT.format("key_id = gen_random_uuid()"), "sold", "key_id is"),
    of_webhooks(
        "delivered or not", _EVENT.format("status = 'dead'"), "sold", "status is dead", by_service=True
    ),
    of_webhooks(
        "an event deleted", "DELETE FROM events WHERE invoice_id = %(sold)s", "sold", "has no webhook event"
    ),
    of_webhooks(
        "an event of an unpaid invoice",
        _EVENT.format("invoice_id = %(waiting)s"),
        "waiting",
        "unknown or not finished",
    ),
    of_webhooks(
        "an event invented",
        "INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url,"
        " destination, payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)"
        " SELECT gen_random_uuid(), %(waiting)s, merchant_id, key_id, event_type, 'pending', callback_url, destination,"
        " payload, 0, 0, now() + interval '1 day', now(), now() FROM events WHERE invoice_id = %(sold)s",
        "waiting",
        "unknown or not finished",
        by_service=True,
    ),
    of_webhooks("a seal", _EVENT.format("seal = NULL"), "sold", "seal is none", by_service=True),
    of_webhooks(
        "whose key signs, and the seal",
        _EVENT.format("key_id = gen_random_uuid(), seal = 'AAAA'"),
        "sold",
        "seal is wrong",
        by_service=True,
    ),
    of_webhooks(
        "an attempt deleted",
        "DELETE FROM attempts WHERE event_id = (SELECT id FROM events WHERE invoice_id = %(sold)s)",
        "sold",
    ),
]


@pytest.fixture(scope="module")
def shop(stack: Stack) -> Iterator[Shop]:
    with pytest.MonkeyPatch.context() as patched, Receiver() as receiver:
        patched.setenv("FIATGATE_HOME", str(stack.home.folder))
        yield opened(Fiatgate(stack), receiver)


@pytest.fixture(scope="module")
def backup(shop: Shop) -> Iterator[Backup]:
    made = Backup(shop)
    yield made
    made.close()
    assert verified() == [], "left behind"


def verified() -> list[str]:
    """The problems that `fiatgate verify` names."""
    ended = run("verify", "--json", "--grace-seconds", "0")
    assert ended.err == ""
    return [f"{problem['check']}: {problem['text']}" for problem in json.loads(ended.out)["problems"]]


def names(problems: list[str], shop: Shop, tampering: Tampering) -> bool:
    of = shop.of.get(tampering.of, shop.merchant)
    return all(any(of in text and name in text for text in problems) for name in tampering.names)


def test_there_are_thirty_and_more() -> None:
    assert len({(each.service, each.name) for each in TAMPERINGS}) == len(TAMPERINGS) >= 30


@pytest.mark.parametrize(
    "tampering", [each for each in TAMPERINGS if each.names], ids=lambda each: f"{each.service}: {each.name}"
)
def test_verify_names_what_was_changed(shop: Shop, backup: Backup, tampering: Tampering) -> None:
    try:
        assert backup.change(tampering.service, tampering.statement) > 0
        problems = verified()
    finally:
        backup.restore(tampering.service)
    assert names(problems, shop, tampering), problems


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda each: f"{each.service}: {each.name}")
def test_the_services_role_is_refused_or_verify_names_it(
    shop: Shop, backup: Backup, tampering: Tampering
) -> None:
    if not tampering.by_service:
        with (
            pytest.raises(psycopg2.errors.InsufficientPrivilege),
            as_the_service(shop, tampering.service) as database,
        ):
            database.execute(tampering.statement, shop.values())
        return
    try:
        with as_the_service(shop, tampering.service) as database:
            database.execute(tampering.statement, shop.values())
            assert database.rowcount == 1
        problems = verified()
    finally:
        backup.restore(tampering.service)
    of = shop.of.get(tampering.of, shop.merchant)
    assert any(of in text for text in problems), problems


def test_a_method_that_was_changed_without_an_act_is_named(shop: Shop, backup: Backup) -> None:
    try:
        assert backup.change(
            "withdrawals", "UPDATE withdrawal_methods SET network_fee = 0.000001 WHERE id = 1"
        )
        problems = verified()
    finally:
        backup.restore("withdrawals")
    assert any(": network_fee is 0.000001" in problem for problem in problems), problems
