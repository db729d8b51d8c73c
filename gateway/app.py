"""All routes, and their collaborators."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import falcon.asgi

from gateway.access.auth import Authentication
from gateway.api.catalog import CurrencyResource, PaymentMethodResource
from gateway.api.invoices import CreateInvoiceResource, InvoiceResource
from gateway.api.webhooks import WebhookResource
from gateway.api.withdrawals import WithdrawalResource
from gateway.config import GatewaySettings, clients_of
from gateway.http.edge import Edge
from gateway.http.exchange import Request
from gateway.http.health import AliveResource, IndexResource, ReadyResource
from gateway.observe.counting import Routes, scraped
from gateway.observe.spans import traced
from gateway.openapi.page import DocsResource, DocsStyleResource, DocumentResource
from gateway.pay.files import BrandResource, ModalResource, StaticResource
from gateway.pay.logos import LogoResource
from gateway.pay.page import PageResource
from gateway.refusals import Refusals
from gateway.walls.uploads import Uploads
from gateway.wiring import Deps, wired


def gateway(settings: GatewaySettings) -> Edge:
    """The ASGI application; its channels are opened when the server's loop runs."""

    @asynccontextmanager
    async def open_app() -> AsyncIterator[Any]:
        async with traced(settings), wired(settings) as deps, scraped(settings):
            yield routes(deps)

    return Edge(
        open_app,
        clients=clients_of(settings),
        uploads=Uploads(
            pictures_most=settings.upload_mib * 2**20,
            pictures_most_per_client=settings.upload_network_mib * 2**20,
        ),
    )


def routes(deps: Deps) -> falcon.asgi.App[Any, Any]:
    """Every address of the gateway. A trailing slash makes no difference anywhere (`edge` removes it)."""
    app = falcon.asgi.App(middleware=[Routes()], request_type=Request)
    app.add_middleware(Authentication(deps))
    Refusals(deps.links).add_to(app)

    app.add_route("/", IndexResource())
    app.add_route("/healthz", AliveResource())
    app.add_route("/readyz", ReadyResource(deps))
    app.add_route("/docs", DocsResource(deps))
    app.add_route("/docs-static/{name}", DocsStyleResource())
    app.add_route("/api/v1/openapi.json", DocumentResource(deps))

    invoices = InvoiceResource(deps)
    webhooks = WebhookResource(deps)
    withdrawals = WithdrawalResource(deps)
    app.add_route("/api/v1/create-invoice", CreateInvoiceResource(deps))
    app.add_route("/api/v1/invoices", invoices, suffix="list")
    app.add_route("/api/v1/invoices/{invoice_ref}", invoices)
    app.add_route("/api/v1/invoices/{invoice_ref}/webhooks", webhooks)
    app.add_route("/api/v1/invoices/{invoice_ref}/webhooks/resend", webhooks, suffix="resend")
    app.add_route("/api/v1/currencies", CurrencyResource(deps))
    app.add_route("/api/v1/payment-methods", PaymentMethodResource(deps))
    app.add_route("/api/v1/withdrawals", withdrawals, suffix="list")
    app.add_route("/api/v1/withdrawals/{withdraw_uuid}", withdrawals)

    page = PageResource(deps)
    app.add_route("/pay/{invoice_id}", page)
    app.add_route("/pay/{invoice_id}/methods", page, suffix="methods")
    app.add_route("/pay/{invoice_id}/paid", page, suffix="paid")
    app.add_route("/pay/{invoice_id}/cancel", page, suffix="cancel")
    app.add_route("/pay/{invoice_id}/appeal", page, suffix="appeal")
    app.add_route("/pay/{invoice_id}/late", page, suffix="late")
    app.add_route("/pay/{invoice_id}/events", page, suffix="events")
    app.add_route("/pay/{invoice_id}/qr.svg", page, suffix="qr")
    app.add_route("/pay-static/{version}/{name}", StaticResource())
    app.add_route("/pay-brand/{name}", BrandResource())
    app.add_route("/pay-logo/{owner}/{logo}", LogoResource(deps))
    app.add_route("/pay-modal.js", ModalResource())
    return app
