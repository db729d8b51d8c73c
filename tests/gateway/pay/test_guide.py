"""/docs/guide and /docs: whole without scripts. With them code is copied, and sections are found by their words."""

import re
from html import unescape
from pathlib import Path
from typing import Final

import pytest
import requests
from playwright.sync_api import expect

from gateway.openapi import guide
from tests.gateway.pay.conftest import Open
from tests.support import axe, screenshots
from tests.support.stack import Stack
from tools.guide import MADE, RECIPES, SOURCE, guide_html

ROOT: Final = Path(__file__).resolve().parents[3]
HTTP_SECONDS: Final = 10
FITS: Final = "document.documentElement.scrollWidth <= window.innerWidth"


def test_the_text_is_that_of_the_document() -> None:
    assert (ROOT / MADE).read_text() == guide_html(), "run `make docs`"


def test_the_guide_has_the_document_with_links_that_lead_somewhere(stack: Stack) -> None:
    answer = requests.get(f"{stack.url}/docs/guide", timeout=HTTP_SECONDS)
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text)
    text = unescape(re.sub("<[^>]+>", "", answer.text))
    source = (ROOT / SOURCE).read_text()
    source = re.sub(r"<!-- installation -->.*?<!-- end -->", "", source, flags=re.DOTALL)
    for block in re.findall(r"^```\w+\n(.*?)^```", source, re.MULTILINE | re.DOTALL):
        assert block.replace(guide.EXAMPLE, stack.url).replace(guide.LOCAL, stack.url) in text
    anchors = set(re.findall(r'id="([^"]+)"', answer.text))
    for heading in re.findall("^## (.*)$", source, re.MULTILINE):
        assert text.count(heading) >= 2, "in the contents and in the text"
    assert stack.url in text and guide.EXAMPLE not in text
    docs = requests.get(f"{stack.url}/docs", timeout=HTTP_SECONDS).text
    there = set(re.findall(r'id="([^"]+)"', docs))
    links = set(re.findall(r'href="([^"]+)"', answer.text))
    assert {link.removeprefix("/docs#") for link in links if link.startswith("/docs#")} <= there
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= anchors
    kinds = ("#", "/docs", "https://", "data:,")
    assert [link for link in links if not link.startswith(kinds)] == [], "lead to nothing here"
    assert source.count(RECIPES) == len([link for link in links if link.startswith("/docs#signature-")])
    assert 'href="/docs/guide"' in docs
    for path in re.findall('"(/docs-static/[^"]+)"', docs):
        file = requests.get(stack.url + path, timeout=HTTP_SECONDS)
        assert (file.status_code, "immutable" in file.headers["Cache-Control"]) == (200, True), path
    assert requests.get(f"{stack.url}/docs-static/0/docs.js", timeout=HTTP_SECONDS).status_code == 404


def test_the_guide_behind_a_prefix_links_there() -> None:
    html = guide.render("https://shop.example/pay&by", prefix="/pay&by", is_local=False, is_test=False)
    assert 'href="/pay&amp;by/docs-static/' in html
    assert "https://shop.example/pay&amp;by/pay-modal.js" in html


def test_an_installation_names_its_own_address_and_nothing_of_make_run() -> None:
    html = guide.render("https://pay.shop.example", prefix="", is_local=False, is_test=False)
    assert "https://pay.shop.example" in html
    for words in ("127.0.0.1:8080", "make run", "fiatgate deals", ".fiatgate", "@@"):
        assert words not in html, words


@pytest.mark.parametrize(
    ("path", "words", "wanted"),
    [
        ("/docs/guide", "Deduplicate event_id", "Before real money"),
        ("/docs", "customer_rate_limit", "CUSTOMER_RATE_LIMIT"),
    ],
)
def test_sections_are_found_by_their_words_and_code_is_copied(
    stack: Stack, open_page: Open, path: str, words: str, wanted: str
) -> None:
    url = f"{stack.url}{path}"
    plain = open_page(scripts=False)
    plain.goto(url)
    expect(plain.get_by_role("searchbox")).to_be_hidden()
    assert plain.locator("main pre").count() > 5
    assert plain.evaluate(FITS)

    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(url)
    block = page.locator("main pre").first
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == block.inner_text().rstrip()
    box = page.get_by_label("Search this page")
    box.fill("no such words anywhere")
    expect(page.get_by_role("status")).to_have_text("Sections with these words: none")
    box.fill(words)
    found = page.get_by_role("search").get_by_role("link")
    expect(found.filter(has_text=wanted).first).to_be_visible()
    expect(page.locator("mark").first).to_be_visible()
    for scheme in ("light", "dark") if path == "/docs/guide" else ("light",):  # they share their stylesheet
        page.emulate_media(color_scheme=scheme)
        screenshots.take(page, f"docs{path.replace('/', '-')}-{scheme}")
        seen = axe.violations(page, axe.RULES if scheme == "light" else axe.CONTRAST)
        assert not seen, [(each["id"], each["nodes"][0]["html"]) for each in seen]
    assert page.evaluate(FITS)
    box.press("Enter")
    page.wait_for_url(re.compile("#"))
    target = page.url.partition("#")[2]
    assert page.evaluate(
        "id => document.getElementById(id).getBoundingClientRect().top < innerHeight", target
    )
