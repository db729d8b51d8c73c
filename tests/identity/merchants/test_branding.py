"""What a merchant may say about the customer's page, and what is refused."""

from __future__ import annotations

import hashlib

import pytest

from kit.rpc.errors import Refused
from services.identity.domain.merchants import LOGO_MAX_BYTES
from services.identity.operations import fields, logos, merchants
from services.identity.operations.merchants import MerchantOptions
from services.identity.wiring import Deps
from tests.identity.merchants.conftest import Shop
from tests.support.pictures import PLACE, PNG, noise, photo, png


@pytest.mark.parametrize("colour", ["red", "#fff", "1d5bb8", "#1d5bb8;", "#1d5bbg", ""])
def test_a_colour_has_one_form(colour: str) -> None:
    with pytest.raises(ValueError, match="colour"):
        fields.parse_colour(colour)
    assert fields.parse_colour("#1D5BB8") == "#1d5bb8"


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://*.shop.example",
        "https://shop.example/",
        "https://shop.example/path",
        "shop.example",
        "javascript:alert(1)",
        "https://shop.example; script-src *",
        "https://shop.example:0",
        "https://Shop.example",
        "https://user@shop.example",
        "'self'",
        "",
    ],
)
def test_an_origin_is_one_and_nothing_else(origin: str) -> None:
    """It goes into a header that says who may frame a page with money at stake."""
    with pytest.raises(ValueError, match="origins"):
        fields.parse_origins(["https://shop.example", origin])


def test_origins_are_told_once_and_bounded() -> None:
    shop = "https://shop.example"
    assert fields.parse_origins([shop, "http://127.0.0.1:8000", shop]) == [shop, "http://127.0.0.1:8000"]
    with pytest.raises(ValueError, match="at most"):
        fields.parse_origins([f"https://{number}.example" for number in range(21)])


def test_a_logo_is_kept_by_its_content_and_without_its_secrets(deps: Deps, shop: Shop) -> None:
    """The one before stays: pages that are open still ask for it."""
    first = set_logo(deps, shop, PNG)
    second = set_logo(deps, shop, photo())
    assert first == hashlib.sha256(PNG).hexdigest()
    kept = logos.get_logo(deps, logo=second or "")
    assert (kept.content_type, PLACE in kept.content) == ("image/jpeg", False)
    assert logos.get_logo(deps, logo=first).content == PNG
    assert set_logo(deps, shop, None) == second
    assert set_logo(deps, shop, b"") is None


@pytest.mark.parametrize(
    "content",
    [b"<svg onload='alert(1)'/>", PNG[:-1], png(513, 512), noise(LOGO_MAX_BYTES + 1)],
    ids=["svg", "broken", "too many pixels", "too large"],
)
def test_what_is_no_logo_is_refused_and_nothing_is_changed(deps: Deps, shop: Shop, content: bytes) -> None:
    before = set_logo(deps, shop, PNG)
    with pytest.raises(Refused) as refused:
        set_logo(deps, shop, content)
    assert (refused.value.reason, refused.value.metadata) == ("VALIDATION_ERROR", {"field": "logo"})
    assert "a WebP of 320 x 96 pixels will do" in refused.value.message
    assert set_logo(deps, shop, None) == before


def test_a_logo_may_be_as_large_as_it_is_shown_and_what_is_dropped_does_not_count(
    deps: Deps, shop: Shop
) -> None:
    """Drawing programs write more about a picture than the picture is large."""
    whole = noise(LOGO_MAX_BYTES)
    assert set_logo(deps, shop, whole) == hashlib.sha256(whole).hexdigest()
    assert set_logo(deps, shop, png(4, 2, (b"tEXt", bytes(100_000)))) == hashlib.sha256(PNG).hexdigest()


@pytest.mark.parametrize("logo", ["", "0" * 64, "\0", "../x"])
def test_an_unknown_logo_is_not_found(deps: Deps, logo: str) -> None:
    with pytest.raises(Refused, match="logo") as refused:
        logos.get_logo(deps, logo=logo)
    assert refused.value.reason == "NOT_FOUND"


def set_logo(deps: Deps, shop: Shop, content: bytes | None) -> str | None:
    options = MerchantOptions(logo=content)
    return merchants.configure_merchant(deps, merchant_id=shop.merchant_id, options=options).logo
