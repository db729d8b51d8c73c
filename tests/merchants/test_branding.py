"""What a merchant may say about the customer's page, and what is refused."""

from __future__ import annotations

import pytest

from services.merchants import domain


@pytest.mark.parametrize("colour", ["red", "#fff", "1d5bb8", "#1d5bb8;", "#1d5bbg", ""])
def test_a_colour_has_one_form(colour: str) -> None:
    with pytest.raises(ValueError, match="colour"):
        domain.parse_colour(colour)
    assert domain.parse_colour("#1D5BB8") == "#1d5bb8"


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
        domain.parse_origins(["https://shop.example", origin])


def test_origins_are_told_once_and_bounded() -> None:
    shop = "https://shop.example"
    assert domain.parse_origins([shop, "http://127.0.0.1:8000", shop]) == [shop, "http://127.0.0.1:8000"]
    with pytest.raises(ValueError, match="at most"):
        domain.parse_origins([f"https://{number}.example" for number in range(21)])
