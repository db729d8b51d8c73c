"""Takes the pictures of docs/images on the stack of `make run`: an invoice on the customer's page, the desk at work, a
merchant's dashboard.

FIATGATE_HOME=/tmp/pictures make run PORT=8081, a fresh one; then FIATGATE_HOME=/tmp/pictures python tools/pictures.py
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg2
import pyotp
from playwright.sync_api import Browser, Page, sync_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, python looks beside the script only

from deploy.local.home import Home  # noqa: E402  see the line above

IMAGES: Final = ROOT / "docs" / "images"
PHONE: Final = {"width": 390, "height": 1190}
DESKTOP: Final = {"width": 1100, "height": 780}
NARROW: Final = {"width": 460, "height": 620}
DESK: Final = {"width": 940, "height": 620}
TALL: Final = {"width": 1100, "height": 820}
WIDE: Final = {"width": 1440, "height": 860}
GAP_PIXELS: Final = 16
WIDEST_PIXELS: Final = 1280
QUALITIES: Final = (0.82, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
MOST_BYTES: Final = 60_000
METHOD: Final = "sepa"
ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
PEOPLE: Final = (
    ("Grace Hopper", "desk", "prices"),
    ("Emmy Noether", "treasury"),
    ("Mary Somerville", "auditor"),
    ("Sofia Kovalevskaya", "viewer"),
)
"""The last one has not accepted the invitation."""
EVENING: Final = (
    ("sepa", "124.30", "Maria Sibylla Merian"),
    ("sepa", "49.90", "Caroline Herschel"),
    ("eur-card", "249.00", "Lise Meitner"),
    ("sepa", "49.90", "C. Herschel"),
    ("sepa", "1875.50", "Emilie du Chatelet"),
    ("eur-card", "38.20", "Maria Mitchell"),
    ("sepa", "310.00", "Laura Bassi"),
)
"""Transfers that customers have reported: method, amount, sender."""
# A report needs a month; a stack that was just made has a day.
MONTH: Final = """
INSERT INTO daily_sums (day, merchant_id, currency_code, method_code, created, opened, replaced, marked, confirmed,
                        rejected, turnover, commission, turnover_usdt, credited_usdt)
SELECT current_date - n, %(merchant_id)s, 'EUR', method, made, chosen, 0, marked, confirmed, 1,
       confirmed * 61.40, confirmed * 3.07, confirmed * 66.739130, confirmed * 63.402174
FROM generate_series(1, 29) AS n
CROSS JOIN LATERAL (
  SELECT 70 + n * 37 %% 23 - CASE WHEN extract(isodow FROM current_date - n) > 5 THEN 28 ELSE 0 END
) AS of_day (sold)
CROSS JOIN LATERAL (VALUES ('', sold, 0, 0, 0), ('sepa', 0, sold * 6 / 10, sold * 5 / 10, sold * 46 / 100),
                           ('eur-card', 0, sold * 3 / 10, sold * 27 / 100, sold * 24 / 100))
  AS each (method, made, chosen, marked, confirmed)
ON CONFLICT DO NOTHING;
INSERT INTO daily_times (day, merchant_id, currency_code, method_code, span, deals)
SELECT day, merchant_id, currency_code, method_code, 38 + extract(day FROM day)::int %% 5, confirmed
FROM daily_sums WHERE confirmed > 0 ON CONFLICT DO NOTHING
"""
# The browser encodes: a canvas returns its content as WebP.
ENCODED: Final = """async ([png, widest, quality]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    const scale = Math.min(1, widest / image.naturalWidth);
    canvas.width = Math.round(image.naturalWidth * scale);
    canvas.height = Math.round(image.naturalHeight * scale);
    const pen = canvas.getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


class Shop:
    """The demo merchant and its operators."""

    def __init__(self, home: Home) -> None:
        stack, demo = home.stack(), home.demo()
        if stack is None or demo is None:
            sys.exit("make run is not running here")
        self._url, self._key, self.merchant_id = stack["url"], demo["api_key"], demo["merchant_id"]
        self._invoices = f"{stack['postgres_url'].rpartition('/')[0]}/invoices"

    def sell(self, number: int, amount: str = "124.30", **more: str) -> dict[str, Any]:
        body = {
            "amount": amount,
            "currency_code": "EUR",
            "customer_id": f"customer-{number}",
            "external_id": f"order-{number}",
            "purpose": f"Order {number}: two lamps and a table",
        } | more
        headers = {"X-Api-Key": self._key, "Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310  our own gateway
            f"{self._url}/api/v1/create-invoice", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            created: dict[str, Any] = json.load(answer)
        return created

    def command(self, *words: str, by: str = "Ada Lovelace") -> Any:
        """Runs an operator's command in the name of a person, and returns its JSON."""
        command = [sys.executable, "-m", "cli", *words, "--json", "--as", email_of(by)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603  our own words
        return json.loads(done.stdout)

    def take_a_month(self) -> None:
        """Gives the reports sums of the days before today."""
        with (
            closing(psycopg2.connect(self._invoices)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(MONTH, {"merchant_id": self.merchant_id})

    def invited(self, name: str, *roles: str, merchant: str = "") -> str:
        """Returns the link of an invitation to the desk, or to the dashboard of a merchant."""
        given = [word for role in roles for word in ("--role", role)]
        given += ["--merchant", merchant] if merchant else []
        link: str = self.command("people", "invite", email_of(name), "--name", name, *given)["link"]
        return link


def email_of(name: str) -> str:
    return f"{name.split(maxsplit=1)[0].lower()}@example.com"


class Camera:
    """Takes pictures of addresses, and writes them into files that a reader loads at once."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    def take(self, url: str, *, desktop: bool = False, **options: Any) -> bytes:
        """Returns the page as seen by a customer on the first visit."""
        context = self._browser.new_context(
            **({"viewport": DESKTOP if desktop else PHONE, "locale": "en", "timezone_id": "UTC"} | options)
        )
        page = context.new_page()
        page.goto(url, wait_until="load")
        page.wait_for_selector("html.scripted")
        picture = page.screenshot(full_page=desktop)
        context.close()
        return picture

    def visitor(self, url: str, size: Any) -> Page:
        """Returns the page of the desk in a browser of its own."""
        page = self._browser.new_context(viewport=size, locale="en", timezone_id="UTC").new_page()
        page.goto(url, wait_until="networkidle")
        return page

    def at_the_desk(self, link: str) -> Page:
        """Returns the browser of a person who has accepted the invitation."""
        page = self.visitor(link, DESK)
        page.get_by_role("button", name="Accept and sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        return page

    def develop(self, name: str, pictures: Sequence[bytes]) -> None:
        """Writes the pictures side by side into one file."""
        page = self._browser.new_page()
        images = "".join(f'<img src="data:image/png;base64,{_base64(each)}">' for each in pictures)
        style = f"margin:0;display:flex;align-items:start;gap:{GAP_PIXELS}px;width:max-content"
        page.set_content(f'<!doctype html><body style="{style}">{images}')
        whole = page.locator("body").screenshot()
        made = (
            base64.b64decode(page.evaluate(ENCODED, [_base64(whole), WIDEST_PIXELS, each]))
            for each in QUALITIES
        )
        (IMAGES / name).write_bytes(next(each for each in made if len(each) <= MOST_BYTES))
        page.close()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def photograph_desk(shop: Shop, camera: Camera) -> None:
    """Needs a stack without an administrator: making a second one takes an approval."""
    invited = shop.invited("Ada Lovelace", "admin")
    desk = urlsplit(invited)._replace(path="", query="").geturl()
    ada = camera.at_the_desk(invited)
    for name, *roles in PEOPLE:
        link = shop.invited(name, *roles)
        if name != PEOPLE[-1][0]:
            camera.at_the_desk(link).context.close()
    sign_in = camera.visitor(f"{desk}/sign-in", NARROW).screenshot()
    ada.goto(f"{desk}/people")
    camera.develop("desk-people.webp", [sign_in, ada.screenshot()])
    confirmed = work(shop)
    ada.set_viewport_size(TALL)  # type: ignore[arg-type]
    ada.goto(f"{desk}/audit")
    camera.develop("desk-acts.webp", [ada.screenshot()])
    photograph_rooms(shop, camera, ada, desk, confirmed)


def photograph_rooms(shop: Shop, camera: Camera, ada: Page, desk: str, confirmed: str) -> None:
    """The tour of docs/operators.md: what waits, a deal with its evidence, a payment's timeline, a month."""
    for number, (method, amount, sender) in enumerate(EVENING, 2001):
        id = shop.sell(number, amount)["invoice_id"]
        shop.command("checkout", "select", id, method)
        shop.command("checkout", "mark-paid", id, "--sender", sender)
    shop.command("checkout", "appeal", id, "--note", "I sent it at noon")
    shop.take_a_month()
    set_factors(ada, desk)
    ada.set_viewport_size(WIDE)  # type: ignore[arg-type]
    camera.develop("desk-now.webp", [at(ada, f"{desk}/")])
    camera.develop("desk-deals.webp", [at(ada, f"{desk}/deals")])
    camera.develop("desk-invoice.webp", [at(ada, f"{desk}/invoices/{confirmed}")])
    camera.develop("desk-reports.webp", [at(ada, f"{desk}/reports?period=30")])


def set_factors(page: Page, desk: str) -> None:
    """Gives the person what each sign-in needs: without it the start page reminds of it."""
    page.goto(f"{desk}/account/totp")
    page.get_by_role("button", name="Show the QR code").click()
    secret = page.locator("input[name=secret]").input_value()
    page.get_by_label("Code that the app shows").fill(pyotp.TOTP(secret).now())
    page.get_by_role("button", name="Finish").click()
    page.goto(f"{desk}/account/password")
    for name in ("password", "repeated"):
        page.locator(f"input[name={name}]").fill("a lamp beside the green table")
    page.keyboard.press("Enter")
    page.wait_for_load_state("networkidle")


def at(page: Page, url: str) -> bytes:
    """Returns the picture of a page of the desk."""
    page.goto(url)
    page.locator("h1").wait_for()
    return page.screenshot()


def work(shop: Shop) -> str:
    """Leaves the acts of a morning: a rate, a payment that came, one that did not, a withdrawal. Returns the id of the
    paid invoice.
    """
    shop.command("rates", "set", "EUR", "0.921", by="Grace Hopper")
    deals, ids = list[str](), list[str]()
    for number in (1044, 1045):
        id = shop.sell(number)["invoice_id"]
        ids.append(id)
        deals.append(shop.command("checkout", "select", id, METHOD)["deal"]["deal_id"])
        shop.command("checkout", "mark-paid", id)
    shop.command("deals", "confirm", deals[0], by="Grace Hopper")
    shop.command("deals", "reject", deals[1], "--yes", "--note", "Nothing came", by="Grace Hopper")
    made = (
        "withdrawals",
        "create",
        shop.merchant_id,
        "--method",
        "1",
        "--address",
        ADDRESS,
        "--amount",
        "25",
    )
    withdrawal = shop.command(*made, by="Emmy Noether")["withdraw_uuid"]
    shop.command("withdrawals", "process", withdrawal, by="Emmy Noether")
    return ids[0]


class _FullDisk(BaseHTTPRequestHandler):
    """A merchant's server that can't take webhooks."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b"no space left on device: /var/lib/shop/orders")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def full_disk() -> Iterator[str]:
    """Gives the address of such a server."""
    with HTTPServer(("127.0.0.1", 0), _FullDisk) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/webhooks"
        server.shutdown()


def photograph_dashboard(shop: Shop, camera: Camera) -> None:
    """The tour of docs/merchants.md: the start page after a month, and a webhook that is not accepted."""
    invited = shop.invited("Mary Somerville", "owner", merchant=shop.merchant_id)
    dashboard = urlsplit(invited)._replace(path="", query="").geturl()
    mary = camera.at_the_desk(invited)
    set_factors(mary, dashboard)
    with full_disk() as url:
        id = shop.sell(3001, "86.40", callback_url=url)["invoice_id"]
        deal = shop.command("checkout", "select", id, METHOD)["deal"]
        shop.command("checkout", "mark-paid", id)
        shop.command("deals", "confirm", deal["deal_id"])
        mary.set_viewport_size(WIDE)  # type: ignore[arg-type]
        event = f"{dashboard}/webhooks?state=retrying&invoice={id}"
        at(mary, event)
        while not mary.locator("tbody th a").count():
            mary.wait_for_timeout(500)
            mary.reload()
        mary.locator("tbody th a").first.click()
        mary.get_by_text("Resend", exact=True).click()
        mary.get_by_role("button", name="Resend now").click()
        at(mary, mary.url.partition("?")[0])  # without the notice about the resend
        mary.get_by_text("Answer of attempt 2").click()
        camera.develop("dashboard-webhook.webp", [mary.screenshot()])
        camera.develop("dashboard-home.webp", [at(mary, f"{dashboard}/")])


def photograph(shop: Shop, camera: Camera) -> None:
    dark: dict[str, Any] = {"color_scheme": "dark"}
    arabic: dict[str, Any] = {"locale": "ar"}
    bought, given_up = shop.sell(1042), shop.sell(1043)
    link, id = bought["payment_link"], bought["invoice_id"]
    choosing = [camera.take(link), camera.take(link, **dark)]
    deal = shop.command("checkout", "select", id, METHOD)["deal"]
    paying = [camera.take(link), camera.take(link, **dark), camera.take(link, **arabic)]
    camera.develop("checkout-desktop.webp", [camera.take(link, desktop=True)])
    shop.command("checkout", "mark-paid", id)
    waiting = camera.take(link)
    shop.command("deals", "confirm", deal["deal_id"])
    camera.develop("checkout.webp", [choosing[0], paying[0], waiting, camera.take(link)])
    late = given_up["payment_link"]
    shop.command("checkout", "select", given_up["invoice_id"], METHOD)
    shop.command("checkout", "cancel", given_up["invoice_id"])
    told = urllib.request.Request(f"{late}/late", b"note=", method="POST")  # noqa: S310  our own gateway
    urllib.request.urlopen(told).close()  # noqa: S310
    camera.develop(
        "checkout-dark-and-right-to-left.webp",
        [choosing[1], paying[1], paying[2], camera.take(late, **arabic)],
    )


if __name__ == "__main__":
    with sync_playwright() as playwright:
        arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        opened = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        shop, camera = Shop(Home.of(os.environ)), Camera(opened)
        photograph(shop, camera)
        photograph_desk(shop, camera)
        photograph_dashboard(shop, camera)
        opened.close()
