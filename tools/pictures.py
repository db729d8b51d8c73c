"""Takes the pictures of docs/images: one invoice's life on the customer's page, on the stack of `make run`.

FIATGATE_HOME=/tmp/pictures make run PORT=8081, a fresh one; then FIATGATE_HOME=/tmp/pictures python tools/pictures.py
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, sync_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, python looks beside the script only

from deploy.local.home import Home  # noqa: E402  see the line above

IMAGES: Final = ROOT / "docs" / "images"
PHONE: Final = {"width": 390, "height": 1050}
DESKTOP: Final = {"width": 1100, "height": 780}
GAP_PIXELS: Final = 16
QUALITY: Final = 0.82
METHOD: Final = "sepa"
# The browser encodes: a canvas returns its content as WebP.
ENCODED: Final = """async ([png, quality]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


class Shop:
    """The demo merchant and its operator."""

    def __init__(self, home: Home) -> None:
        stack, demo = home.stack(), home.demo()
        if stack is None or demo is None:
            sys.exit("make run is not running here")
        self._url, self._key = stack["url"], demo["api_key"]

    def sell(self, number: int) -> dict[str, Any]:
        body = {
            "amount": "124.30",
            "currency_code": "EUR",
            "customer_id": f"customer-{number}-{os.getpid()}",
            "external_id": f"pictures-{number}-{os.getpid()}",
            "purpose": f"Order {number}: two lamps and a table",
        }
        headers = {"X-Api-Key": self._key, "Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310  our own gateway
            f"{self._url}/api/v1/create-invoice", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            created: dict[str, Any] = json.load(answer)
        return created

    def command(self, *words: str) -> Any:
        """Runs an operator's command and returns its JSON."""
        command = [sys.executable, "-m", "cli", *words, "--json"]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603  our own words
        return json.loads(done.stdout)


class Camera:
    """Takes pictures of an address, each as seen by a customer on the first visit."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    def take(self, url: str, *, desktop: bool = False, **options: Any) -> bytes:
        context = self._browser.new_context(
            **({"viewport": DESKTOP if desktop else PHONE, "locale": "en", "timezone_id": "UTC"} | options)
        )
        page = context.new_page()
        page.goto(url, wait_until="load")
        page.wait_for_selector("html.scripted")
        picture = page.screenshot(full_page=desktop)
        context.close()
        return picture

    def develop(self, name: str, pictures: Sequence[bytes]) -> None:
        """Writes the pictures side by side into one file."""
        page = self._browser.new_page()
        images = "".join(f'<img src="data:image/png;base64,{_base64(each)}">' for each in pictures)
        style = f"margin:0;display:flex;align-items:start;gap:{GAP_PIXELS}px;width:max-content"
        page.set_content(f'<!doctype html><body style="{style}">{images}')
        whole = page.locator("body").screenshot()
        encoded: str = page.evaluate(ENCODED, [_base64(whole), QUALITY])
        (IMAGES / name).write_bytes(base64.b64decode(encoded))
        page.close()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


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
        photograph(Shop(Home.of(os.environ)), Camera(opened))
        opened.close()
