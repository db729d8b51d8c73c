"""One whole purchase against a running stack, for `make demo`.

The merchant talks HTTP with its key, the customer posts the page's forms, the operator uses gRPC, and a receiver takes
the webhook, whose signature is verified. Every step is checked; the first one that is wrong ends the demo.
"""

import json
import os
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import requests
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cli import banking, connection, stack
from cli.first_steps import Prepared
from cli.receiving import HTTP_SECONDS, WEBHOOK_SECONDS, Receiver
from demo.webhooks import Delivery, is_signed
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.codes import in_groups
from kit.base.ids import new_id

ARRIVAL_SECONDS = 30
AMOUNT = "100.50"
CURRENCY = "EUR"
WITHDRAWAL = "25"
SENDER = "Alex Customer"
Report = Callable[[str, str], None]


class DemoFailed(Exception):
    """A step had a wrong result; the message names the step and the result."""


@dataclass(frozen=True)
class Shop:
    """The demo merchant with its key: JSON over HTTP."""

    url: str
    merchant_id: str
    api_key: str
    secret: str

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = requests.request(
            method, self.url + path, json=body, headers={"X-Api-Key": self.api_key}, timeout=HTTP_SECONDS
        )
        value = answer.json()
        if not answer.ok:
            raise DemoFailed(f"{method} {path} answered {answer.status_code} {_code_and_message(value)}")
        return value


def is_local() -> bool:
    """Returns whether the demo is meant for a local stack: one runs here, or no other installation is named."""
    return stack.found() is not None or not os.environ.get("FIATGATE_IDENTITY_ADDRESS")


def shop_of(prepared: Prepared) -> Shop:
    """Returns the demo merchant of an installation that is not local; the gateway by its address inside of it."""
    return Shop(
        url=connection.internal_gateway_url(),
        merchant_id=prepared.merchant_id,
        api_key=prepared.api_key,
        secret=prepared.secret,
    )


def demo_shop() -> Shop:
    """Returns the demo merchant. Raises stack.NoAddress when no local stack was ever started here."""
    credentials = connection.demo_credentials()
    return Shop(
        url=connection.gateway_url(),
        merchant_id=credentials["merchant_id"],
        api_key=credentials["api_key"],
        secret=credentials["secret"],
    )


def run(shop: Shop, receiver: Receiver, report: Report) -> None:
    """Runs the purchase step by step and calls `report(step, detail)` after each. Raises DemoFailed."""
    before = _balance(shop)
    invoice = _create(shop, receiver.url, report)
    deal = _pay(shop, invoice, report)
    _confirm(shop, invoice, deal, report)
    _webhook(shop, invoice, receiver, report)
    _history_and_resend(shop, invoice, receiver, report)
    _credit(shop, invoice, before, report)
    _withdraw(shop, report)


def _create(shop: Shop, callback_url: str, report: Report) -> dict[str, Any]:
    # A currency that was made a moment ago reaches the copies of the catalog a moment later.
    _wait(lambda: CURRENCY in _offered(shop), f"a method for {CURRENCY} with a rate")
    order = f"demo-{secrets.token_hex(6)}"
    body = {
        "amount": AMOUNT,
        "currency_code": CURRENCY,
        "customer_id": f"customer-{secrets.token_hex(6)}",
        "external_id": order,
        "purpose": "Fiatgate demo",
        "callback_url": callback_url,
        "success_url": "https://shop.example/thanks",
        "fail_url": "https://shop.example/sorry",
    }
    invoice: dict[str, Any] = shop.call("POST", "/api/v1/create-invoice", body)
    _expect(invoice["status"] == "pending", f"a new invoice is {invoice['status']}")
    report("Merchant creates an invoice", f"{AMOUNT} {CURRENCY}, order {order}\n{invoice['payment_link']}")
    return invoice


def _offered(shop: Shop) -> set[str]:
    """Returns the currencies that have a method."""
    methods = shop.call("GET", "/api/v1/payment-methods")["data"]
    return {method["currency"]["code"] for method in methods}


def _pay(shop: Shop, invoice: dict[str, Any], report: Report) -> dict[str, Any]:
    """Does the customer's part on the page, without a script, by its forms."""
    page = f"{shop.url}/pay/{invoice['invoice_id']}"
    shown = _page(requests.get(page, timeout=HTTP_SECONDS))
    methods = re.findall(r'name="method_code"[^>]*value="([^"]+)"', shown)
    _expect(bool(methods), "the page offers no payment method")
    report("Customer opens the page", f"{len(methods)} methods: {', '.join(methods)}")
    _page(requests.post(f"{page}/methods", data={"method_code": methods[0]}, timeout=HTTP_SECONDS))
    deal = _read(shop, invoice)["deal"]
    _expect(deal is not None and deal["status"] == "pending", "choosing a method opened no deal")
    reference = in_groups(_deal(deal["deal_id"]).reference)
    report(
        f"Customer chooses {deal['payment_method_name']}",
        f"to send {deal['amount_fiat']} {CURRENCY} at {deal['conversion_rate']} {CURRENCY} per USDT, "
        f"until {datetime.fromisoformat(deal['expires_at']):%H:%M} UTC, payment reference {reference}",
    )
    paid = {"deal_id": deal["deal_id"], "sender_name": SENDER}
    _page(requests.post(f"{page}/paid", data=paid, timeout=HTTP_SECONDS))
    marked: dict[str, Any] = _read(shop, invoice)["deal"]
    _expect(marked["mark_paid_at"] is not None, "the deal is not marked paid")
    _expect(_deal(marked["deal_id"]).sender_name == SENDER, "the deal does not have the sender's name")
    report("Customer marks it paid", f"deal {marked['deal_id']}, sent by {SENDER}, waits for the operator")
    return marked


def _deal(deal_id: str) -> invoices_pb2.Deal:
    return connection.desk().GetDeal(invoices_pb2.GetDealRequest(deal_id=deal_id)).deal


def _confirm(shop: Shop, invoice: dict[str, Any], deal: dict[str, Any], report: Report) -> None:
    """Lets the invented bank send a statement, and confirms the deal by its line there."""
    file = banking.demo_statement()
    _expect(file.state == bank_pb2.IMPORT_STATE_TAKEN, f"the bank's statement is not taken: {file.problem}")
    _wait(lambda: bool(_lines_of(deal)), "a bank line to be proposed for the deal")
    line = _lines_of(deal)[0]
    report(
        "Bank sends today's statement",
        f"{file.lines} lines, {file.new_lines} of them new\n"
        f"{line.amount} {line.currency_code} from {line.counterparty_name}: {line.text}",
    )
    banking.confirmed(line.line_id)
    read = _read(shop, invoice)
    _expect(read["status"] == "success", f"the confirmed invoice is {read['status']}")
    report(
        "Operator confirms the deal by the bank line",
        f"invoice {read['status']}, {read['deal']['merchant_usdt']} USDT for the merchant",
    )


def _lines_of(deal: dict[str, Any]) -> Sequence[bank_pb2.Line]:
    request = bank_pb2.ListLinesRequest(deal_id=deal["deal_id"], state=bank_pb2.LINE_STATE_PROPOSED)
    return connection.bank().ListLines(request).lines


def _webhook(shop: Shop, invoice: dict[str, Any], receiver: Receiver, report: Report) -> None:
    deliveries = receiver.wait(1)
    _expect(
        bool(deliveries),
        f"no webhook came within {WEBHOOK_SECONDS} s; does this stack allow loopback receivers "
        "(FIATGATE_WEBHOOK_ALLOW_PRIVATE=on)?",
    )
    payload = _verified(shop, deliveries[0])
    _expect(payload["order_id"] == invoice["invoice_id"], "the webhook is about another invoice")
    _expect(payload["status"] == "success", f"the webhook has status {payload['status']}")
    report(
        "Merchant receives one signed webhook",
        f"signature valid, event {payload['event_id']}: {payload['status']}",
    )


def _verified(shop: Shop, delivery: Delivery) -> dict[str, Any]:
    """Returns the payload after checking its signature over the raw body (docs/api.md#signature)."""
    _expect(is_signed(delivery, [shop.secret]), "the webhook's signature is wrong")
    payload: dict[str, Any] = json.loads(delivery.body)
    _expect(
        delivery.headers["x-idempotency-key"] == payload["event_id"], "X-Idempotency-Key is not the event id"
    )
    return payload


def _history_and_resend(shop: Shop, invoice: dict[str, Any], receiver: Receiver, report: Report) -> None:
    path = f"/api/v1/invoices/{invoice['invoice_id']}/webhooks"
    # The receiver has it a moment before the history does, and a resend before that would be a conflict.
    _wait(
        lambda: shop.call("GET", path)["events"][0]["status"] == "success", "the history to show the delivery"
    )
    resent = shop.call("POST", f"{path}/resend")
    _expect(resent["resend"]["ok"], f"the resend failed: {resent['resend']}")
    first, second = receiver.wait(2)[:2]
    _expect(first.body == second.body, "the second delivery differs from the first")
    history = shop.call("GET", path)
    (event,) = history["events"]
    _expect(event["total_attempts"] == 2, f"the history shows {event['total_attempts']} attempts")
    report(
        "Merchant requests a resend",
        f"same bytes again; history: {event['status']} after 1 auto + 1 manual attempt",
    )


def _credit(shop: Shop, invoice: dict[str, Any], before: Decimal, report: Report) -> None:
    due = Decimal(_read(shop, invoice)["deal"]["merchant_usdt"])
    # The credit travels as an event, like the webhook: usually it has arrived already.
    _wait(lambda: _balance(shop) - before == due, f"the balance to grow by {due} USDT")
    after = _balance(shop)
    report("Merchant's balance", f"{before} + {due} = {after} USDT available")


def _withdraw(shop: Shop, report: Report) -> None:
    desk = connection.withdrawals()
    created = desk.CreateWithdrawal(
        withdrawals_pb2.CreateWithdrawalRequest(
            merchant_id=shop.merchant_id,
            withdrawal_method_id=_tron_method(),
            address="TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
            amount=WITHDRAWAL,
            request_key=str(new_id()),
        )
    ).withdrawal
    id = created.withdraw_uuid
    desk.ProcessWithdrawal(withdrawals_pb2.ProcessWithdrawalRequest(withdraw_uuid=id))
    transaction = secrets.token_hex(32)
    desk.CompleteWithdrawal(
        withdrawals_pb2.CompleteWithdrawalRequest(withdraw_uuid=id, external_tx_id=transaction)
    )
    read = shop.call("GET", f"/api/v1/withdrawals/{id}")["data"]
    _expect(read["status"] == "success", f"the withdrawal is {read['status']}")
    _expect(read["external_tx_id"] == transaction, "the API shows another transaction")
    report(
        "Withdrawal goes out",
        f"{read['amount']} - {read['network_fee']} fee = {read['amount_to_receive']} USDT",
    )
    report("Merchant's balance", f"{_balance(shop)} USDT available")


def _tron_method() -> int:
    answer = connection.withdrawals().ListWithdrawalMethods(withdrawals_pb2.ListWithdrawalMethodsRequest())
    for method in answer.methods:
        if method.network == "TRC20" and method.enabled:
            return method.method_id
    raise DemoFailed("there is no TRC20 withdrawal method")


def _balance(shop: Shop) -> Decimal:
    request = withdrawals_pb2.GetBalanceRequest(merchant_id=shop.merchant_id)
    return Decimal(connection.withdrawals().GetBalance(request).available)


def _read(shop: Shop, invoice: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = shop.call("GET", f"/api/v1/invoices/{invoice['invoice_id']}")["data"]
    return data


def _code_and_message(refusal: dict[str, Any]) -> str:
    """Returns both of an error in either shape of docs/api.md#errors."""
    error = refusal["error"]
    if isinstance(error, dict):
        return f"{error['code']}: {error['message']}"
    return f"{error}: {refusal['message']}"


def _page(answer: requests.Response) -> str:
    _expect(answer.ok, f"the page answered {answer.status_code}")
    return answer.text


def _wait(condition: Callable[[], bool], what: str) -> None:
    attempts = Retrying(
        retry=retry_if_result(lambda holds: not holds),
        stop=stop_after_delay(ARRIVAL_SECONDS),
        wait=wait_fixed(0.05),
    )
    try:
        attempts(condition)
    except RetryError:
        raise DemoFailed(f"waited {ARRIVAL_SECONDS} s in vain for {what}") from None


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DemoFailed(otherwise)
