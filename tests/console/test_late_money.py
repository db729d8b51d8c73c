"""Late money at both surfaces: from the customer's report to the merchant's answer and the operator's end."""

from fiatgate.withdrawals.v1 import refunds_pb2
from tests.console.conftest import Open, Staff, with_cookies
from tests.console.house import House
from tests.console.looks import looks_right
from tests.console.till import Till


def test_the_merchant_is_asked_answers_and_reads_what_the_operator_did(
    till: Till, staff: Staff, house: House, open_page: Open
) -> None:
    number = till.late("I sent it at noon")
    members = {role: house.person(role, merchant=till.shop.merchant_id) for role in ("finance", "viewer")}
    finance, viewer, desk = members["finance"], members["viewer"], staff("desk")
    assert "credit it or return it?" in finance.get("/").text
    path = f"/cases/{number}"
    assert f'href="{path}#answer"' in finance.get("/").text
    assert f'href="{path}"' in finance.get("/cases?state=asked").text
    assert f'action="{path}/answer"' not in viewer.get(path).text
    assert viewer.post(f"{path}/answer", {"answer": "return"}).status_code == 403
    assert finance.post(f"{path}/answer", {"answer": "keep"}).status_code == 422
    assert "It may answer until" in desk.get(path).text
    browser = with_cookies(open_page(), finance)
    for address, name in ((path, "late-case"), ("/cases", "late")):
        browser.goto(finance.url + address)
        looks_right(browser, name)
    said = finance.post(f"{path}/answer", {"answer": "return", "text": "He wants it back"}).text
    assert "Your answer is given to the operator." in said
    again = finance.post(f"{path}/answer", {"answer": "credit"}).text
    assert "Nothing was changed: the case was answered already" in again
    assert "credit it or return it?" not in finance.get("/").text
    shown = desk.get(path).text
    assert "He wants it back" in shown
    assert 'value="return" required checked' in shown
    till.returned(number)
    desk.post(f"{path}/answer", {"outcome": "Sent back today.", "ended_as": "return"})
    page = finance.get(path).text
    for words in (
        "I sent it at noon",
        "Send it back",
        "is being sent back to the customer",
        "Sent back today.",
    ):
        assert words in page, words
    assert desk.email not in page
    (line,) = [each for each in finance.rows("/cases.csv") if each["number"] == str(number)]
    assert (line["answer"], line["ended_as"], line["text"]) == ("return", "return", "He wants it back")
    invoice = finance.get(f"/invoices/{line['invoice_id']}").text
    assert "Merchant answered: send it back" in invoice
    assert f'href="{path}"' in invoice
    asked = refunds_pb2.ListRefundsRequest(invoice_id=line["invoice_id"], limit=1)
    (refund,) = till.desk.refunds.ListRefunds(asked).refunds
    till.desk.refunds.CancelRefund(refunds_pb2.CancelRefundRequest(refund_id=refund.refund_id))
    assert "was not sent back to the customer: the refund was canceled" in finance.get(path).text
    till.returned(number, key="again")
    assert "is being sent back to the customer" in finance.get(path).text
