"""`fiatgate verify` against real faults: planted in the databases behind the services' backs, found, mended."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg2
import pytest

from cli import verifying
from cli.commands.verify import exit_code
from cli.verifying import Findings, Problem, Repairs
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from tests.cli.command_line import SECOND_PERSON, Ended, Fiatgate, run
from tests.cli.test_operating import TRON_ADDRESS
from tests.support.receiver import Receiver
from tests.support.stack import Stack

SETTLE_SECONDS = 60
AT_ONCE = ("--grace-seconds", "0")


@contextmanager
def behind_its_back(stack: Stack, service: str) -> Iterator[Any]:
    """A cursor of the superuser in a service's database, for whom no trigger fires; committed at the end."""
    url = stack.home.running_stack()["postgres_url"].rpartition("/")[0]
    connection = psycopg2.connect(f"{url}/{service}")
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            yield cursor
    finally:
        connection.close()


@dataclass(frozen=True)
class Sold:
    """A purchase that came out right: credited, and its webhook delivered."""

    invoice_id: str
    external_id: str
    merchant_id: str
    merchant_usdt: str
    receiver: Receiver

    @property
    def reference(self) -> str:
        return f"invoice:{self.invoice_id}"


@pytest.fixture(scope="module")
def sold(stack: Stack) -> Iterator[Sold]:
    """One for all tests here: each leaves the books right."""
    with pytest.MonkeyPatch.context() as patched, Receiver() as receiver:
        patched.setenv("FIATGATE_HOME", str(stack.home.folder))
        fiatgate = Fiatgate(stack)
        body = {
            "amount": f"{200 + new_id().int % 9_000}.00",
            "currency_code": "EUR",
            "customer_id": new_id().hex,
            "external_id": str(new_id()),
            "callback_url": receiver.url(),
        }
        answer = stack.request("POST", "/api/v1/create-invoice", json=body)
        assert answer.status_code == 201, answer.text
        id = answer.json()["invoice_id"]
        deal = fiatgate("checkout", "select", id, "sepa")["deal"]
        done = fiatgate("deals", "confirm", deal["deal_id"], "--yes")
        receiver.wait_for(1)
        try:
            wait_until(
                lambda: verify().exit_code == 0, "everything to be settled", timeout_seconds=SETTLE_SECONDS
            )
        except TimeoutError:
            pytest.fail(f"not settled: {problems(verify())}")
        yield Sold(id, body["external_id"], stack.demo["merchant_id"], done["merchant_usdt"], receiver)
        ended = verify()
        assert ended.exit_code == 0, f"left behind: {ended.out}"


def verify(*options: str) -> Ended:
    return run("verify", "--json", *AT_ONCE, *options)


def problems(ended: Ended) -> list[str]:
    """The sentences of a proof that failed."""
    assert (ended.exit_code, ended.err) == (1, "")
    report = json.loads(ended.out)
    assert report["ok"] is False
    return [f"{problem['check']}: {problem['text']}" for problem in report["problems"]]


def test_right_books_are_proved(fiatgate: Fiatgate, sold: Sold) -> None:
    report = json.loads(verify().out)
    assert (report["ok"], report["problems"], report["repaired"]) == (True, [], [])
    assert report["checked"]["credits"] >= 1
    assert report["checked"]["webhook events"] >= 1
    assert fiatgate.shown("verify").rstrip().endswith("Every cent is accounted for.")


def test_a_lost_credit_is_found_and_rebuilt(fiatgate: Fiatgate, sold: Sold) -> None:
    balance = fiatgate("balance", sold.merchant_id)
    with behind_its_back(fiatgate.stack, "withdrawals") as database:
        database.execute("DELETE FROM transfers WHERE reference = %s", (sold.reference,))
        database.execute(
            "UPDATE accounts SET balance = balance - %s WHERE merchant_id = %s AND kind = 'merchant_available'",
            (sold.merchant_usdt, sold.merchant_id),
        )
    missing = (
        f"credits: invoice {sold.invoice_id}: {sold.merchant_usdt} USDT were never credited "
        f"to merchant {sold.merchant_id}"
    )
    assert problems(verify()) == [missing]
    told = run("verify", *AT_ONCE)
    assert told.exit_code == 1
    assert "fiatgate verify --repair" in told.out

    mended = verify("--repair")
    assert mended.exit_code == 0, mended
    assert json.loads(mended.out)["repaired"] == [f"invoice {sold.invoice_id} announced again"]
    assert fiatgate("balance", sold.merchant_id) == balance


def test_a_lost_webhook_event_is_found_rebuilt_and_sent(fiatgate: Fiatgate, sold: Sold) -> None:
    with behind_its_back(fiatgate.stack, "webhooks") as database:
        database.execute(
            "DELETE FROM attempts USING events WHERE event_id = events.id AND invoice_id = %s",
            (sold.invoice_id,),
        )
        database.execute("DELETE FROM events WHERE invoice_id = %s", (sold.invoice_id,))
    assert problems(verify()) == [f"webhooks: invoice {sold.invoice_id} has no webhook event"]
    mended = verify("--repair")
    assert mended.exit_code == 0, mended
    first, again = sold.receiver.wait_for(2)
    assert again.body == first.body, "the same event_id: the merchant knows it has it"


def test_after_a_restore_lost_invoices_are_named_with_what_others_know(
    fiatgate: Fiatgate, sold: Sold
) -> None:
    since = ("--since", fiatgate("invoices", "show", sold.invoice_id)["created_at"])
    report = json.loads(verify(*since).out)
    assert report["ok"]
    assert report["checked"]["facts of NATS"] >= 1
    said = run("verify", *since).out
    assert "as far as NATS and the invoices created since" in said
    assert "Every cent is accounted for" not in said
    with behind_its_back(fiatgate.stack, "invoices") as database:
        database.execute("CREATE TABLE kept AS SELECT * FROM invoices WHERE id = %s", (sold.invoice_id,))
        database.execute("DELETE FROM invoices WHERE id = %s RETURNING external_id", (sold.invoice_id,))
        (order,) = database.fetchone()
    try:
        fact, credit, event = problems(verify(*since))
    finally:
        with behind_its_back(fiatgate.stack, "invoices") as database:
            database.execute("INSERT INTO invoices SELECT * FROM kept")
            database.execute("DROP TABLE kept")
    told = f"invoice.success was delivered to merchant {sold.merchant_id}"
    assert fact.startswith(f"facts of NATS: invoice {sold.invoice_id}, order {order} over ")
    assert f"says success and a credit of {sold.merchant_usdt} USDT, but invoices has lost it" in fact
    lost = f"invoice {sold.invoice_id}, which is unknown or not finished: {told}"
    assert credit == f"credits: credit of {sold.merchant_usdt} USDT for {lost}"
    assert event == f"webhooks: event of {lost}"


def test_after_a_restore_an_open_withdrawal_may_have_been_sent_and_may_have_been_canceled(
    fiatgate: Fiatgate, sold: Sold
) -> None:
    create = ("withdrawals", "create", sold.merchant_id, "--method", "1", "--address", TRON_ADDRESS)
    made = fiatgate(*create, "--amount", "10")
    id, since = made["withdraw_uuid"], ("--since", SystemClock().now().isoformat())
    try:
        told = [line for line in json.loads(verify(*since).out)["to_look_up"] if id in line]
        shown = run("verify", *AT_ONCE, *since).out
    finally:
        fiatgate("withdrawals", "cancel", id)
    assert len(told) == 1 and told[0] in shown
    for sign in ("sent, canceled or failed", "address", "CancelWithdrawal", "FailWithdrawal"):
        assert sign in told[0]
    assert not any(id in line for line in json.loads(verify(*since).out)["to_look_up"])


def test_a_stream_that_is_younger_than_the_restore_point_is_no_all_clear(
    fiatgate: Fiatgate, sold: Sold
) -> None:
    (told,) = problems(verify("--since", "1000d"))
    assert told.startswith("facts of NATS: the stream begins at 20")
    for time, why in (
        ("2999-01-01", "the time is in the future"),
        ("0001-01-01", "is before 1970"),
        ("0001-01-01T00:00+05:00", "is no time such as"),
        ("300000d", "is before 1970"),
    ):
        refused = run("verify", "--since", time)
        assert (refused.exit_code, refused.out) == (2, "")
        assert why in " ".join(refused.err.split())
    (told,) = problems(verify("--since", "1970-01-01"))
    assert "after 1970-01-01T00:00:00Z" in told


COMPLETED = """
WITH step AS (
  INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
  VALUES (%(deal)s, now(), 'completed', 'successfully_paid', 'operator', '')
), done AS (
  UPDATE deals SET status = 'completed', sub_status = 'successfully_paid', finished_at = now(), merchant_usdt =
    div(invoice_amount * (100 - merchant_percent) * 1000000, conversion_rate * 100) / 1000000
  WHERE id = %(deal)s RETURNING requisite_id
), free AS (
  UPDATE requisites SET open_deals = open_deals - 1 WHERE id = (SELECT requisite_id FROM done)
)
UPDATE invoices SET status = 'success', finished_at = now(), event_id = gen_random_uuid() WHERE id = %(invoice)s
"""


def test_a_deal_completed_by_sql_is_named_and_credited_only_once_two_operators_accept_it(
    fiatgate: Fiatgate, sold: Sold
) -> None:
    """In every column as the service would have done it, with the rights of its role."""
    body = {
        "amount": "123.00",
        "currency_code": "EUR",
        "customer_id": new_id().hex,
        "external_id": new_id().hex,
    }
    invoice = fiatgate.stack.request("POST", "/api/v1/create-invoice", json=body).json()["invoice_id"]
    deal = fiatgate("checkout", "select", invoice, "sepa")["deal"]["deal_id"]
    before = fiatgate("balance", sold.merchant_id)
    with (
        closing(psycopg2.connect(fiatgate.stack.database_urls["invoices"])) as connection,
        connection,
        connection.cursor() as database,
    ):
        database.execute(COMPLETED, {"deal": deal, "invoice": invoice})
    for options in ((), ("--repair", "--repair-seconds", "1")):
        ended = verify(*options)
        assert (
            f"facts: invoice {invoice}: finished, but it has no signed fact: changed past the service"
            in str(problems(ended))
        )
        assert json.loads(ended.out)["repaired"] == []
    due = Findings(problems=[Problem("credits", "never credited", invoice)])
    assert verifying.repair(due) == Repairs(refused=[invoice])
    assert fiatgate("balance", sold.merchant_id) == before

    asked = verify("--repair", "--accept", invoice, "--as", "ann@example.com")
    (approval_id,) = json.loads(asked.out)["requested"]
    assert fiatgate("balance", sold.merchant_id) == before
    fiatgate("approvals", "approve", approval_id, "--yes", *SECOND_PERSON)
    wait_until(
        lambda: fiatgate("balance", sold.merchant_id) != before,
        "the credit",
        timeout_seconds=SETTLE_SECONDS,
    )
    mended = verify("--repair")
    assert mended.exit_code == 0, mended
    assert fiatgate("balance", sold.merchant_id) != before


def test_a_service_that_is_away_is_named_and_the_others_are_verified(
    fiatgate: Fiatgate, sold: Sold, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("FIATGATE_CATALOG_ADDRESS", f"127.0.0.1:{free_ports(1)[0]}")
        ended = verify()
    report = json.loads(ended.out)
    assert (ended.exit_code, report["ok"], report["problems"]) == (4, False, [])
    assert [each.partition(":")[0] for each in report["not_run"]] == [
        "books of catalog",
        "heads that catalog keeps",
        "acts of catalog",
    ]
    assert report["checked"]["credits"] >= 1


UNREADABLE = """
ALTER TABLE approvals DROP CONSTRAINT ck_approvals_bounds;
INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note)
VALUES (gen_random_uuid(), 'rate.set', 'currency:EUR', 'Set', CAST('{"n": ' || repeat('1', 10000) || '}' AS jsonb),
        'ann@example.com', 'ann@example.com', now(), '')
"""
READABLE = "DELETE FROM approvals WHERE length(request::text) > 9000; ALTER TABLE approvals ADD "
BOUNDS = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'ck_approvals_bounds'"


def test_a_row_that_cannot_be_read_is_named_and_the_others_are_verified(
    fiatgate: Fiatgate, sold: Sold
) -> None:
    with behind_its_back(fiatgate.stack, "catalog") as database:
        database.execute(BOUNDS)
        (bounds,) = database.fetchone()
        database.execute(UNREADABLE)
    try:
        ended = verify()
    finally:
        with behind_its_back(fiatgate.stack, "catalog") as database:
            database.execute(f"{READABLE} CONSTRAINT ck_approvals_bounds {bounds}")
    report = json.loads(ended.out)
    assert report["not_run"] == []
    (removed,) = report["problems"]
    assert "ck_approvals_bounds" in removed["text"]
    (unreadable,) = report["unreadable"]
    assert unreadable.startswith("request ")
    assert report["checked"]["credits"] >= 1


def test_the_exit_code_tells_a_problem_a_check_that_did_not_end_and_an_unreadable_row_apart() -> None:
    problem = [Problem("ledger", "wrong")]
    for findings, code in (
        (Findings(), 0),
        (Findings(problems=problem, not_run=["books of catalog"], unreadable=["a row"]), 1),
        (Findings(not_run=["books of catalog"], unreadable=["a row"]), 4),
        (Findings(unreadable=["a row"]), 3),
    ):
        assert exit_code(findings) == code


def test_a_changed_amount_is_found_and_not_made_up_for(fiatgate: Fiatgate, sold: Sold) -> None:
    wrong = Decimal(sold.merchant_usdt) + 1
    change = "UPDATE transfers SET amount = %s WHERE reference = %s"
    with behind_its_back(fiatgate.stack, "withdrawals") as database:
        database.execute(change, (wrong, sold.reference))
    try:
        for ended in (verify(), verify("--repair", "--repair-seconds", "1")):
            found = problems(ended)
            assert (
                f"credits: invoice {sold.invoice_id}: {wrong} USDT credited to merchant {sold.merchant_id}, "
                f"{sold.merchant_usdt} due to merchant {sold.merchant_id}"
            ) in found
            assert any(text.startswith("ledger: ") and sold.merchant_id in text for text in found), found
            assert json.loads(ended.out)["repaired"] == []
    finally:
        with behind_its_back(fiatgate.stack, "withdrawals") as database:
            database.execute(change, (sold.merchant_usdt, sold.reference))


def test_a_credit_of_nothing_sold_is_found(fiatgate: Fiatgate, sold: Sold) -> None:
    """Also under the external id of a paid invoice, which the merchant chooses."""
    copied = """
        INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
        SELECT gen_random_uuid(), %s, debit_account, credit_account, 7, created_at
        FROM transfers WHERE reference = %s
    """
    for invented in (str(new_id()), sold.external_id):
        with behind_its_back(fiatgate.stack, "withdrawals") as database:
            database.execute(copied, (f"invoice:{invented}", sold.reference))
        text = f"credit of 7.000000 USDT for invoice {invented}, which is unknown or not finished"
        try:
            assert f"credits: {text}" in problems(verify())
        finally:
            with behind_its_back(fiatgate.stack, "withdrawals") as database:
                database.execute("DELETE FROM transfers WHERE reference = %s", (f"invoice:{invented}",))


def test_an_event_that_says_something_else_is_found(fiatgate: Fiatgate, sold: Sold) -> None:
    other = str(new_id())
    change = "UPDATE events SET payload_event_id = %s WHERE invoice_id = %s RETURNING payload_event_id"
    read = "SELECT payload_event_id FROM events WHERE invoice_id = %s"
    with behind_its_back(fiatgate.stack, "webhooks") as database:
        database.execute(read, (sold.invoice_id,))
        (right,) = database.fetchone()
        database.execute(change, (other, sold.invoice_id))
    try:
        assert problems(verify()) == [
            f"webhooks: event of invoice {sold.invoice_id}: payload_event_id is {other}, due is {right}",
            f"webhooks: event of invoice {sold.invoice_id}: seal is wrong, due is that of webhooks: changed past the "
            "service, and not sent",
        ]
    finally:
        with behind_its_back(fiatgate.stack, "webhooks") as database:
            database.execute(change, (right, sold.invoice_id))
