"""Every state of the page, as axe-core and the eye see it: light and dark, in both directions of writing."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from fiatgate.invoices.v1 import invoices_pb2 as pb
from tests.gateway.desk import Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.gateway.pay.pages import seen

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
DESKTOP = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def pages(desk: Desk, shop: Shop, method: str) -> dict[str, str]:
    """An address in each state."""

    def invoice() -> tuple[str, str]:
        created = shop.create()
        return created["invoice_id"], created["payment_link"]

    fresh, open_one, marked, appealed, done, late, told, failed, nobody = (invoice() for _ in range(9))
    desk.choose(open_one[0], method)
    desk.mark_paid(marked[0], method)
    appeal = pb.OpenAppealRequest(deal_id=desk.mark_paid(appealed[0], method).deal_id)
    desk.deals.OpenAppeal(appeal)
    desk.confirm(done[0], method)
    for id, _ in (late, told):
        desk.choose(id, method)
        desk.cancel(id)
    desk.checkout.OpenCase(pb.OpenCaseRequest(invoice_id=told[0]))
    reject = pb.RejectDealRequest(deal_id=desk.mark_paid(failed[0], method).deal_id)
    desk.deals.RejectDeal(reject)
    desk.cancel(nobody[0])
    return {
        "choose": fresh[1],
        "choose-again": f"{open_one[1]}/methods?notice=no_available_requisites",
        "pay": open_one[1],
        "cancel": f"{open_one[1]}/cancel",
        "waiting": marked[1],
        "appeal": f"{marked[1]}/appeal",
        "review": appealed[1],
        "success": done[1],
        "canceled": nobody[1],
        "failed": failed[1],
        "late": f"{late[1]}/late",
        "case": told[1],
        "unknown": f"{shop.url}/pay/none",
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ar"])
def test_nothing_stands_in_anybodys_way(
    open_page: Open, pages: dict[str, str], theme: str, language: str
) -> None:
    page = open_page(color_scheme=theme, locale=language)
    found = []
    for state, url in pages.items():
        page.goto(url)
        for details in page.locator("details").all():
            details.locator("summary").click()
        seen(page, f"{state}-{theme}-{language}")
        found += complaints(page, state)
    assert not found, "\n".join(found)


def test_a_wide_screen_is_fine_too(open_page: Open, pages: dict[str, str]) -> None:
    page = open_page(viewport=DESKTOP)
    found = []
    for state in ("choose", "pay", "success"):
        page.goto(pages[state])
        seen(page, f"{state}-desktop")
        found += complaints(page, state)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("language", ["es", "pt", "de", "fr", "tr", "ru", "uk", "kk", "hi", "zh"])
def test_the_longest_words_fit_the_smallest_phone(
    open_page: Open, pages: dict[str, str], language: str
) -> None:
    page = open_page(locale=language)
    for state in ("choose", "pay", "success"):
        page.goto(pages[state])
        seen(page, f"{state}-{language}")


def complaints(page: Page, state: str) -> list[str]:
    report = Axe().run(page, options=RULES)
    return [
        f"{state}: {violation['id']}: {violation['help']}: {[node['html'] for node in violation['nodes']]}"
        for violation in report.response["violations"]
    ]
