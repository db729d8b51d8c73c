"""All routes, and their collaborators."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import falcon.asgi

from gateway.access.auth import Authentication
from gateway.api.catalog import CurrencyResource, PaymentMethodResource
from gateway.api.events import EventResource
from gateway.api.invoices import CreateInvoiceResource, InvoiceResource
from gateway.api.money import BalanceResource, CorrectionResource, StatementResource
from gateway.api.refunds import RefundResource
from gateway.api.simulation import SimulationResource
from gateway.api.webhooks import WebhookResource
from gateway.api.withdrawals import AddressResource, WithdrawalResource
from gateway.config import GatewaySettings
from gateway.exchange import Exchange, Request
from gateway.feed.lines import LinesResource
from gateway.openapi.guide import GuideResource
from gateway.openapi.page import DocsResource, DocumentResource
from gateway.openapi.page import static_files as docs_files
from gateway.pay.files import BrandResource, ModalResource, static_files
from gateway.pay.links import LinkResource
from gateway.pay.logos import LogoResource
from gateway.pay.page import PageResource
from gateway.pay.simulation import SimulatedPageResource
from gateway.refusals import Refusals
from gateway.walls.pace import Pace
from gateway.walls.uploads import Uploads
from gateway.wiring import Deps, addresses, wired
from kit.web.config import clients_of
from kit.web.counting import scraped
from kit.web.edge import Edge
from kit.web.files import FilesResource
from kit.web.health import AliveResource, IndexResource, ReadyResource
from kit.web.middleware import Middleware
from kit.web.reach import can_reach_all
from kit.web.server import Site
from kit.web.spans import traced

INDEX: Final = "Fiatgate. Merchants: /docs, and /api/v1 with the X-Api-Key header. Health: /healthz, /readyz."


def site(settings: GatewaySettings) -> Site:
    """Returns the gateway, for the server."""
    return Site(
        edge=lambda: gateway(settings),
        is_ready=lambda: can_reach_all(addresses(settings), settings.identity),
    )


def gateway(settings: GatewaySettings) -> Edge:
    """Returns the ASGI application; its channels are opened when the server's loop runs."""

    @asynccontextmanager
    async def open_app() -> AsyncIterator[Any]:
        async with traced(settings), wired(settings) as deps, scraped(settings):
            yield routes(deps)

    uploads = Uploads(
        pictures_most=settings.upload_mib * 2**20,
        pictures_most_per_client=settings.upload_network_mib * 2**20,
    )
    return Edge(open_app, clients=clients_of(settings), bounds=uploads.bounds, exchange_type=Exchange)


def routes(deps: Deps) -> falcon.asgi.App[Any, Any]:
    """Returns every address of the gateway. A trailing slash makes no difference (`kit.web.edge` removes it)."""
    app = falcon.asgi.App(middleware=[Middleware()], request_type=Request)
    is_test = deps.settings.is_test
    app.add_middleware(
        Authentication(deps.merchants, deps.feed, deps.rate_limit, deps.strangers, is_test=is_test)
    )
    Refusals(deps.links, is_test=is_test).add_to(app)

    app.add_route("/", IndexResource(INDEX))
    app.add_route("/healthz", AliveResource())
    app.add_route("/readyz", ReadyResource(deps.health))
    app.add_route("/docs", DocsResource(deps))
    app.add_route("/docs/guide", GuideResource(deps))
    app.add_route("/docs-static/{version}/{name}", FilesResource(docs_files()))
    app.add_route("/api/v1/openapi.json", DocumentResource(deps))

    invoices = InvoiceResource(deps)
    webhooks = WebhookResource(deps)
    withdrawals = WithdrawalResource(deps)
    corrections = CorrectionResource(deps)
    app.add_route("/api/v1/create-invoice", CreateInvoiceResource(deps))
    app.add_route("/api/v1/invoices", invoices, suffix="list")
    app.add_route("/api/v1/invoices/{invoice_ref}", invoices)
    app.add_route("/api/v1/invoices/{invoice_ref}/cancel", invoices, suffix="cancel")
    app.add_route("/api/v1/invoices/{invoice_ref}/webhooks", webhooks)
    app.add_route("/api/v1/invoices/{invoice_ref}/webhooks/resend", webhooks, suffix="resend")
    app.add_route("/api/v1/invoices/{invoice_ref}/refunds", RefundResource(deps))
    app.add_route("/api/v1/invoices/{invoice_ref}/corrections", corrections)
    app.add_route("/api/v1/corrections", corrections, suffix="list")
    app.add_route("/api/v1/balance", BalanceResource(deps))
    app.add_route("/api/v1/events", EventResource(deps))
    app.add_route("/api/v1/statement", StatementResource(deps))
    app.add_route("/api/v1/addresses", AddressResource(deps))
    app.add_route("/api/v1/currencies", CurrencyResource(deps))
    app.add_route("/api/v1/payment-methods", PaymentMethodResource(deps))
    app.add_route("/api/v1/withdrawals", withdrawals, suffix="list")
    app.add_route("/api/v1/withdrawals/{withdraw_uuid}", withdrawals)

    if is_test:
        app.add_route("/api/v1/test/invoices/{invoice_ref}/{step}", SimulationResource(deps))

    app.add_route("/feed/v1/lines", LinesResource(deps))

    _add_pages(app, deps)
    return app


def _add_pages(app: falcon.asgi.App[Any, Any], deps: Deps) -> None:
    """Adds the addresses of customers."""
    is_test, pace = deps.settings.is_test, Pace(deps.settings.network_page_requests_per_minute)
    page = (SimulatedPageResource if is_test else PageResource)(deps, pace)
    app.add_route("/pay/{invoice_id}", page)
    app.add_route("/pay/{invoice_id}/methods", page, suffix="methods")
    app.add_route("/pay/{invoice_id}/paid", page, suffix="paid")
    app.add_route("/pay/{invoice_id}/cancel", page, suffix="cancel")
    app.add_route("/pay/{invoice_id}/appeal", page, suffix="appeal")
    app.add_route("/pay/{invoice_id}/late", page, suffix="late")
    app.add_route("/pay/{invoice_id}/refund", page, suffix="refund")
    app.add_route("/pay/{invoice_id}/events", page, suffix="events")
    app.add_route("/pay/{invoice_id}/qr.svg", page, suffix="qr")
    if is_test:
        app.add_route("/pay/{invoice_id}/simulate", page, suffix="simulate")
    app.add_route("/pay/links/{link_id}", LinkResource(deps, pace))
    app.add_route("/pay-static/{version}/{name}", FilesResource(static_files()))
    app.add_route("/pay-brand/{name}", BrandResource(deps.strangers))
    app.add_route("/pay-logo/{owner}/{logo}", LogoResource(deps))
    app.add_route("/pay-modal.js", ModalResource())
