"""Every state of the page as invoices would tell it."""

from collections.abc import Sequence
from datetime import timedelta

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.pay.languages import Language
from gateway.pay.refunds import ACCOUNT_MAX_CHARACTERS, KINDS, Refund
from gateway.pay.rendering import render
from gateway.pay.view import OUTCOMES, view_of
from gateway.walls.uploads import PICTURE_MAX_BYTES
from kit.base.proto import timestamp_from
from tests.gateway.pay.test_view import LINKS, NOW, PAGE, PAID, REQUISITE, a_checkout, a_deal


def _method(**changes: object) -> pb.CheckoutMethod:
    method = catalog_pb2.PaymentMethod(method_code="card", name="Card", payment_minutes=15)
    return pb.CheckoutMethod(
        offer=catalog_pb2.MethodOffer(method=method),
        **({"amount_fiat": "102.50"} | changes),  # type: ignore[arg-type]
    )


METHODS = [_method(), _method(amount_fiat="100.00")]
TAKEN = [_method(taken=True), _method(taken=True, free_from=timestamp_from(NOW + timedelta(minutes=5)))]
REFERENCE = {"reference": "01234567", "takes_reference": True, "sender_name": "9"}
FINISHED = timestamp_from(NOW - timedelta(days=1))

ALL_STATES: dict[str, tuple[pb.GetCheckoutResponse, str]] = {
    "choose": (a_checkout(methods=METHODS), "choose"),
    "choose, all taken": (a_checkout(methods=TAKEN), "choose"),
    "choose again, all taken": (a_checkout(deal=a_deal(), methods=TAKEN), "choose"),
    "choose again": (a_checkout(deal=a_deal(), methods=METHODS), "choose"),
    "choose again, the account is not the decided one": (
        a_checkout(deal=a_deal(), methods=METHODS, requisite=None),
        "choose",
    ),
    "choose, nothing to choose": (a_checkout(), "choose"),
    "pay": (a_checkout(deal=a_deal(), methods=METHODS, requisite=REQUISITE), "pay"),
    "pay with a reference": (
        a_checkout(deal=a_deal(**REFERENCE), methods=METHODS, requisite=REQUISITE),
        "pay",
    ),
    "pay with a reference, an IBAN": (
        a_checkout(
            deal=a_deal(**REFERENCE, currency_code="EUR"),
            requisite=pb.Requisite(holder="7", account="DE02120300000000202051"),
        ),
        "pay",
    ),
    "waiting with a reference": (a_checkout(deal=a_deal(mark_paid_at=PAID, **REFERENCE)), "waiting"),
    "review with a reference": (
        a_checkout(deal=a_deal(status=pb.DEAL_STATUS_APPEAL, **REFERENCE)),
        "review",
    ),
    "late with a reference": (
        a_checkout(status=pb.INVOICE_STATUS_EXPIRED, deal=a_deal(**REFERENCE)),
        "late",
    ),
    "receipt with a reference": (
        a_checkout(status=pb.INVOICE_STATUS_SUCCESS, deal=a_deal(**REFERENCE)),
        "outcome",
    ),
    "pay, time is up": (
        a_checkout(deal=a_deal(), requisite=REQUISITE, now=timestamp_from(NOW + timedelta(hours=1))),
        "pay",
    ),
    "cancel before a method": (a_checkout(), "cancel"),
    "cancel": (a_checkout(deal=a_deal()), "cancel"),
    "waiting": (a_checkout(deal=a_deal(mark_paid_at=PAID)), "waiting"),
    "appeal": (a_checkout(deal=a_deal(mark_paid_at=PAID)), "appeal"),
    "review": (a_checkout(deal=a_deal(status=pb.DEAL_STATUS_APPEAL)), "review"),
    "late": (a_checkout(status=pb.INVOICE_STATUS_EXPIRED, deal=a_deal()), "late"),
    "case": (
        a_checkout(status=pb.INVOICE_STATUS_EXPIRED, deal=a_deal(), case=pb.Case(number=1001)),
        "outcome",
    ),
    "case answered": (
        a_checkout(status=pb.INVOICE_STATUS_FAIL, deal=a_deal(), case=pb.Case(number=1001, outcome="9")),
        "outcome",
    ),
    **{
        f"refunds, {kind or 'any form'}": (
            a_checkout(status=pb.INVOICE_STATUS_SUCCESS, deal=a_deal(), account_kind=kind),
            "outcome",
        )
        for kind in ("", *KINDS)
    },
    **{
        f"{outcome} {with_deal}": (a_checkout(status=status, deal=a_deal() if with_deal else None), "outcome")
        for status, outcome in OUTCOMES.items()
        for with_deal in (True, False)
    },
}


REFUNDS = [
    Refund("0", "1", "waiting", "", ""),
    *(Refund("0", "1", status, "···7", "9") for status in ("requested", "sent", "done", "failed")),
    *(Refund("0", "1", status, "···7", "", is_surplus=True) for status in ("done", "credited")),
]


def shown(
    checkout: pb.GetCheckoutResponse,
    template: str,
    language: Language,
    *,
    notice: str = "",
    refunds: Sequence[Refund] = (),
) -> str:
    if checkout.invoice.status == pb.INVOICE_STATUS_SUCCESS:
        refunds = REFUNDS
    return render(
        template,
        language,
        is_test=False,
        prefix="",
        page=PAGE,
        brand=None,
        view=view_of(checkout, LINKS, refunds),
        notice=notice,
        stays=False,
        note="",
        note_max_characters=2000,
        sender_name_max_characters=128,
        picture_max_bytes=PICTURE_MAX_BYTES,
        typed=None,
        account_kinds=KINDS,
        account_max_characters=ACCOUNT_MAX_CHARACTERS,
    )
