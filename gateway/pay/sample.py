"""A payment that does not exist, on the customer's page: the dashboard shows it to merchants who choose a colour."""

from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.pay import languages
from gateway.pay.accounts import code_of, reference_in_groups
from gateway.pay.rendering import render
from gateway.pay.until import Until
from gateway.pay.view import Brand, Requisite, Screen, View
from kit.base.groups import account_in_groups

ACCOUNT: Final = "DE89370400440532013000"  # the example of the register of IBANs
AMOUNT: Final = "49.90"
CURRENCY: Final = "EUR"
HOLDER: Final = "Example"
REFERENCE: Final = "7K3M9QTX"
_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_UNTIL: Final = Until(at=_NOW + timedelta(minutes=15), now=_NOW)


def page(
    *, requested: str, accepted: str, merchant_name: str, stylesheet: str, logo: str, prefix: str
) -> str:
    """Returns the page on which a customer pays, without scripts, its links leading nowhere.

    requested, accepted  the language of the address and those of the browser, as `languages.chosen` takes them
    stylesheet, logo     paths; empty: the page's own colour, no logo
    prefix               of the path of the page's files
    """
    return render(
        "sample",
        languages.chosen(requested=requested, remembered="", accepted=accepted),
        prefix=prefix,
        is_test=False,
        view=_view(merchant_name, logo),
        brand=stylesheet,
        page="#",
        notice=None,
        sender_name_max_characters=1,
    )


def _view(merchant_name: str, logo: str) -> View:
    code = code_of(account=ACCOUNT, holder=HOLDER, amount=AMOUNT, currency=CURRENCY, reference=REFERENCE)
    return View(
        screen=Screen.PAY,
        invoice_id="",
        brand=Brand(stylesheet=None, logo=logo or None, frame_origins=()),
        merchant_name=merchant_name,
        amount=AMOUNT,
        currency=CURRENCY,
        methods=(),
        nothing_to_choose=None,
        deal_id="",
        method_name="SEPA",
        to_pay=AMOUNT,
        requisite=Requisite(holder=HOLDER, account=account_in_groups(ACCOUNT), bank=None, code=code),
        reference=reference_in_groups(REFERENCE),
        takes_reference=True,
        order_number="",
        choose_until=_UNTIL,
        pay_until=_UNTIL,
    )
