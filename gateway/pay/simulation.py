"""The payment page in test mode (docs/api.md#test-mode)."""

from functools import partial

import falcon.asgi

from fiatgate.invoices.v1 import simulation_pb2 as pb
from gateway.exchange import Request
from gateway.pay.page import PageResource
from gateway.walls.pace import Pace
from gateway.wiring import Deps


class SimulatedPageResource(PageResource):
    """The payment page with /pay/{invoice_id}/simulate."""

    def __init__(self, deps: Deps, pace: Pace) -> None:
        super().__init__(deps, pace)
        self._simulation = deps.simulation

    on_get_simulate = PageResource.on_get_paid

    async def on_post_simulate(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        form = await self._form(req, invoice_id)
        request = pb.SimulateRequest(
            invoice_ref=invoice_id.lower(), step=form.text("step"), amount=form.text("amount")
        )
        await self._step(req, resp, invoice_id, partial(self._simulation.Simulate, request))
