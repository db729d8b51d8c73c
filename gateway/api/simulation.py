"""Test mode: steps of customers, operators and time by the merchant's program (docs/api.md#test-mode)."""

from typing import Final

import falcon
import falcon.asgi

from fiatgate.invoices.v1 import simulation_pb2 as pb
from gateway.api.invoices import invoice_to_json
from gateway.api.references import invoice_ref_from
from gateway.exchange import Request
from gateway.json.body import simulate_from
from gateway.json.query import no_query
from gateway.wiring import Deps
from kit.rpc.errors import not_found
from kit.web.replies import reply

STEPS: Final = frozenset(
    {"select", "mark-paid", "confirm", "reject", "appeal", "resolve", "expire", "late", "cancel"}
)


class SimulationResource:
    """POST /api/v1/test/invoices/{invoice_ref}/{step}."""

    def __init__(self, deps: Deps) -> None:
        self._simulation = deps.simulation
        self._links = deps.links
        self._marked = deps.marked

    async def on_post(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str, step: str) -> None:
        no_query(req.query_string)
        if step not in STEPS:
            raise not_found("NOT_FOUND", "No such address")
        await req.exchange.receive_body()
        wanted = simulate_from(req)
        answer = await self._simulation.Simulate(
            pb.SimulateRequest(
                merchant_id=req.exchange.caller.merchant_id,
                invoice_ref=invoice_ref_from(invoice_ref),
                step=step,
                payment_method_code=wanted.method_code or "",
                amount=wanted.amount or "",
            )
        )
        reply(resp, {"successful": True, "data": self._marked(invoice_to_json(answer.invoice, self._links))})
