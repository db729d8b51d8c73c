"""The addresses of currencies, methods and rates, and their entries of the navigation."""

from typing import Final

from console.page import App
from console.prices.currencies import CurrenciesPage, CurrencyPage
from console.prices.history import AcceptedPage, RatePage
from console.prices.logos import MethodLogo
from console.prices.methods import MethodPage, MethodsPage
from console.prices.rates import RatesPage
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/rates",
        "Rates",
        "the rate of each currency, its sources, how long it counts",
        reads(*READERS),
        group="setup",
        count="rates_held",
    ),
    Link("/methods", "Methods", "payment methods, their limits and places", reads(*READERS), group="setup"),
    Link("/currencies", "Currencies", "currencies, their limits and markup", reads(*READERS), group="setup"),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    rates, rate = RatesPage(deps), RatePage(deps)
    rates.add_to(app, "/rates")
    app.add_route("/rates/pull", rates, suffix="pull")
    rate.add_to(app, "/rates/{currency_code}")
    AcceptedPage(deps).add_to(app, "/rates/{currency_code}/accepted")
    app.add_route("/rates/{currency_code}/set", rate, suffix="set")
    app.add_route("/rates/{currency_code}/accept", rate, suffix="accept")

    currency, method = CurrencyPage(deps), MethodPage(deps)
    CurrenciesPage(deps).add_to(app, "/currencies")
    app.add_route("/new-currency", currency, suffix="new")
    app.add_route("/currencies/{currency_code}", currency)
    MethodsPage(deps).add_to(app, "/methods")
    app.add_route("/new-method", method, suffix="new")
    app.add_route("/methods/{method_code}", method)
    MethodLogo(deps).add_logo_to(app, "/methods/{method_code}/logo", "/method-logos")
