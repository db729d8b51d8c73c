"""A catalog to talk to and a rate source to ask: what the tests of this folder share."""

import itertools
import json
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import psycopg2

from fiatgate.catalog.v1 import catalog_pb2 as pb
from fiatgate.catalog.v1 import catalog_pb2_grpc
from fiatgate.merchants.v1 import merchants_pb2
from kit.rpc.approvals import ApprovalsServicer
from kit.rpc.errors import Refused
from services.catalog.domain import Origin, Rate
from services.catalog.rpc import APPROVABLE
from services.catalog.store.rates import seal_of_rate
from services.catalog.wiring import Deps
from tests.support.acting import BEN, Approvals
from tests.support.clock import ManualClock
from tests.support.databases import owner_url

_numbers = itertools.count()


@dataclass
class Catalog:
    deps: Deps
    stub: catalog_pb2_grpc.CatalogServiceStub
    clock: ManualClock

    def new_code(self) -> str:
        """A currency code no other test has: the tests of a module share one database."""
        number = next(_numbers)
        return "".join(chr(65 + number // 26**place % 26) for place in (2, 1, 0))

    def currency(self, code: str | None = None, **options: Any) -> str:
        code = self.new_code() if code is None else code
        values: dict[str, Any] = {
            "name": "Crown",
            "symbol": "¤",
            "decimals": 2,
            "min_amount": "1",
            "max_amount": "10000",
            "markup": "0",
            "enabled": True,
        }
        self.stub.SetCurrency(pb.SetCurrencyRequest(currency=pb.Currency(code=code, **(values | options))))
        return code

    def method(self, currency_code: str, method_code: str | None = None, **options: Any) -> str:
        method_code = f"method-{next(_numbers)}" if method_code is None else method_code
        values: dict[str, Any] = {
            "name": "Bank",
            "min_sum": "10",
            "max_sum": "500",
            "payment_minutes": 15,
            "commission": "0.02",
            "active": True,
        }
        method = pb.PaymentMethod(method_code=method_code, currency_code=currency_code, **(values | options))
        self.stub.SetPaymentMethod(pb.SetPaymentMethodRequest(method=method))
        return method_code

    def set_rate(
        self,
        code: str,
        rate: str,
        *,
        anyway: bool = False,
        validity: pb.RateValidity.ValueType = pb.RATE_VALIDITY_UNSPECIFIED,
    ) -> pb.Rate:
        request = pb.SetRateRequest(currency_code=code, rate=rate, anyway=anyway, validity=validity)
        try:
            return self.stub.SetRate(request).rate
        except Refused as refused:
            return self._approved(code, refused)

    def accept_rate(self, code: str) -> pb.Rate:
        try:
            return self.stub.AcceptRate(pb.AcceptRateRequest(currency_code=code)).rate
        except Refused as refused:
            return self._approved(code, refused)

    @property
    def approvals(self) -> Approvals:
        return Approvals(ApprovalsServicer("catalog", self.deps, APPROVABLE))

    def _approved(self, code: str, refused: Refused) -> pb.Rate:
        if refused.reason != "APPROVAL_REQUIRED":
            raise refused
        self.approvals.approve(BEN, refused.metadata["approval_id"])
        return self.state(code).in_force

    def pull(self) -> dict[str, pb.RateState]:
        return {state.currency_code: state for state in self.stub.PullRates(pb.PullRatesRequest()).rates}

    def state(self, code: str) -> pb.RateState:
        states = self.stub.ListRates(pb.ListRatesRequest()).rates
        return next(state for state in states if state.currency_code == code)

    def currencies(self, merchant: merchants_pb2.Merchant) -> dict[str, str]:
        """What endpoint 6 shows: code -> rate."""
        answer = self.stub.ListMerchantCurrencies(pb.ListMerchantCurrenciesRequest(merchant=merchant))
        return {offer.currency.code: offer.rate for offer in answer.currencies}

    def offers(
        self, merchant: merchants_pb2.Merchant, currency_code: str | None = None
    ) -> list[pb.MethodOffer]:
        """What endpoint 7 shows."""
        request = pb.ListMethodOffersRequest(merchant=merchant, currency_code=currency_code)
        return list(self.stub.ListMethodOffers(request).offers)

    def quote(self, merchant: merchants_pb2.Merchant, method_code: str) -> pb.GetQuoteResponse:
        return self.stub.GetQuote(pb.GetQuoteRequest(merchant=merchant, method_code=method_code))

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Straight to the database, past all rules."""
        connection = psycopg2.connect(owner_url(self.deps.settings.database_url))
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement, values)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def insert_rate(self, code: str, rate: str, *, age_seconds: float = 0, document: object = None) -> None:
        """A sealed rate as no operation would write it. For a document of another shape the database has one rule less
        from then on.
        """
        if document is not None:
            self.execute("ALTER TABLE rates DROP CONSTRAINT IF EXISTS ck_rates_document")
        at = self.clock.now() - timedelta(seconds=age_seconds)
        self.execute(
            "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
            " VALUES (%s, %s, 'operator', %s, %s, %s)",
            code,
            rate,
            at,
            json.dumps({"quotes": []} if document is None else document),
            seal_of_rate(self.deps.seals, code, Rate(Decimal(rate), Origin.OPERATOR, at)),
        )


def merchant(*currencies: str, **options: Any) -> merchants_pb2.Merchant:
    """One that may use only `currencies` (none given: all), in a category of 5 percent."""
    values: dict[str, Any] = {"category_code": "shops", "category_commission": "0.05", "client_share": "0"}
    return merchants_pb2.Merchant(allowed_currencies=currencies, **(values | options))


@dataclass
class RateServer:
    """A real HTTP server with a body (or a status, or silence) at each path; what is not known is 404."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    together: threading.Barrier | None = None
    """Requests wait there for each other."""

    def __enter__(self) -> Self:
        rates = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                rates.asked.append(self.path)
                if self.path in rates.silent:
                    rates.over.wait(600)
                    return
                if rates.together is not None:
                    rates.together.wait(60)
                body = rates.bodies.get(self.path)
                self.send_response(rates.statuses.get(self.path, 404 if body is None else 200))
                if self.path == "/moved":
                    self.send_header("Location", "/good")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def say(self, path: str, rates: dict[str, Any]) -> None:
        """From now on the source at `path` answers these rates, by currency code."""
        self.bodies[path] = json.dumps({"rates": rates}).encode()

    def source(self, path: str, *codes: str, **options: Any) -> dict[str, Any]:
        """The setting of the source at `path`, named as its path."""
        url = f"http://127.0.0.1:{self._server.server_address[1]}{path}"
        return {"name": path[1:], "url": url, "paths": {code: f"rates.{code}" for code in codes}, **options}
