"""Pictures, late money, streams and floods, over plain HTTP."""

import re
from pathlib import Path
from typing import Any

import pytest
import requests

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.ids import new_id
from tests.gateway.conftest import PAGES
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.strangers import Watched
from tests.support.pictures import JPEG, PNG, WEBP
from tests.support.stack import Stack


def send(url: str, note: str, picture: bytes | None, name: str = "receipt.png") -> requests.Response:
    files: dict[str, Any] = {"note": (None, note)}
    if picture is not None:
        files["picture"] = (name, picture, "image/png")
    return requests.post(url, files=files, timeout=HTTP_SECONDS, allow_redirects=False)


def marked(desk: Desk, shop: Shop, method: str) -> tuple[str, str]:
    """The page and the deal of a payment that is said to be made."""
    invoice = shop.create()
    return invoice["payment_link"], desk.mark_paid(invoice["invoice_id"], method).deal_id


# -- pictures


@pytest.mark.parametrize(
    ("picture", "content_type"), [(PNG, "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp")]
)
def test_an_appeals_picture_reaches_the_operator_only(
    desk: Desk, shop: Shop, method: str, picture: bytes, content_type: str
) -> None:
    page, deal_id = marked(desk, shop, method)
    assert send(f"{page}/appeal", "see here", picture, "../../etc/passwd.html").status_code == 303
    (proof,) = desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal_id)).proofs
    assert (proof.kind, proof.content_type, proof.size) == (pb.PROOF_KIND_APPEAL, content_type, len(picture))
    kept = desk.deals.GetProof(pb.GetProofRequest(deal_id=deal_id, kind=pb.PROOF_KIND_APPEAL))
    assert kept.content == picture
    assert "passwd" not in requests.get(page, timeout=HTTP_SECONDS).text


def test_the_operator_saves_the_picture(
    desk: Desk, shop: Shop, stack: Stack, method: str, tmp_path: Path
) -> None:
    page, deal_id = marked(desk, shop, method)
    send(f"{page}/appeal", "", PNG)
    file = tmp_path / "picture.png"
    stack.cli("deals", "show", deal_id, "--save-picture", str(file))
    assert file.read_bytes() == PNG


@pytest.mark.parametrize(
    "picture",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"GIF89a",
        b"%PDF-1.7",
        PNG + bytes(5_242_880),
    ],
    ids=["svg", "gif", "pdf", "too large"],
)
def test_what_is_no_picture_is_refused_and_what_was_written_stays(
    desk: Desk, shop: Shop, method: str, picture: bytes
) -> None:
    page, deal_id = marked(desk, shop, method)
    response = send(f"{page}/appeal", "Paid at <noon>", picture)
    assert response.status_code == 422
    assert "must be JPEG, PNG or WebP" in response.text
    assert "Paid at &lt;noon&gt;</textarea>" in response.text
    assert not desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal_id)).proofs


def test_no_other_page_takes_so_much(desk: Desk, shop: Shop, method: str) -> None:
    page, _ = marked(desk, shop, method)
    assert send(f"{page}/cancel", "", PNG + bytes(100_000)).status_code == 413
    assert send(f"{page}/appeal", "", bytes(6_000_000)).status_code == 413


# -- late money


def test_late_money_is_recorded_once_and_changes_nothing(
    desk: Desk, shop: Shop, stack: Stack, method: str
) -> None:
    invoice = shop.create()
    desk.choose(invoice["invoice_id"], method)
    desk.cancel(invoice["invoice_id"])
    before = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]
    for note in ("first", "second"):
        assert send(f"{invoice['payment_link']}/late", note, PNG).status_code == 303
    number = case_number(requests.get(invoice["payment_link"], timeout=HTTP_SECONDS).text)
    case = stack.cli("cases", "show", str(number))
    assert (case["note"], case["proof"]["size"]) == ("first", len(PNG))
    assert case["requisite"]["account"] == "4000002500003155"
    assert number in [each["number"] for each in stack.cli("cases", "list", "--open")]
    stack.cli(
        "cases",
        "resolve",
        str(number),
        "--outcome",
        "<b>Sent back</b>",
        "--ended-as",
        "answer_only",
        "--as",
        "eve@example.com",
    )
    page = requests.get(invoice["payment_link"], timeout=HTTP_SECONDS).text
    assert "&lt;b&gt;Sent back&lt;/b&gt;" in page
    assert number not in [each["number"] for each in stack.cli("cases", "list", "--open")]
    assert shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"] == before


def case_number(html: str) -> int:
    found = re.search(r'class="number">(\d+)<', html)
    assert found
    return int(found[1])


@pytest.mark.parametrize("state", ["pending", "success", "before a method"])
def test_where_no_money_can_be_late_there_is_no_case(desk: Desk, shop: Shop, method: str, state: str) -> None:
    invoice = shop.create()
    if state == "success":
        desk.confirm(invoice["invoice_id"], method)
    elif state == "before a method":
        desk.cancel(invoice["invoice_id"])
    assert send(f"{invoice['payment_link']}/late", "give me money", None).status_code == 303
    page = requests.get(invoice["payment_link"], timeout=HTTP_SECONDS).text
    assert 'class="case"' not in page
    assert "I have already paid" not in page


# -- streams


def listen(page: str, state: str = "") -> requests.Response:
    return requests.get(f"{page}/events?state={state}", stream=True, timeout=HTTP_SECONDS)


def test_a_stream_rings_at_once_when_the_page_is_behind(shop: Shop) -> None:
    with listen(shop.create()["payment_link"], "pay of long ago") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert stream.headers["Cache-Control"] == "no-store"
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith(b"event")) == b"event: changed"


# -- floods


def test_a_flood_on_one_payment_is_stopped_and_others_go_on(shop: Shop, strict: Watched) -> None:
    flooded, other = (f"{strict.url}/pay/{shop.create()['invoice_id']}" for _ in range(2))
    answers = [requests.get(flooded, timeout=HTTP_SECONDS) for _ in range(3 * PAGES)]
    assert {answer.status_code for answer in answers[:PAGES]} == {200}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["Retry-After"] == "6"
    assert "This page was loaded too many times" in refused.text
    canceled = (
        requests.post(f"{flooded}/cancel", data={"a": "b"}, timeout=HTTP_SECONDS) for _ in range(PAGES)
    )
    assert 429 in {answer.status_code for answer in canceled}
    assert requests.get(other, timeout=HTTP_SECONDS).status_code == 200


def test_an_unknown_payment_has_no_stream_and_no_code(stack: Stack) -> None:
    for step in ("events", "qr.svg", "late"):
        assert requests.get(f"{stack.url}/pay/{new_id()}/{step}", timeout=HTTP_SECONDS).status_code == 404
