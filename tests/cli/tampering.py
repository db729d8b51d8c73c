"""A shop with something of everything, whose rows are changed behind the services' backs and put back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import psycopg2

from cli import connection
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from kit.base.ids import new_id
from tests.cli.command_line import Fiatgate, run
from tests.support.databases import COUNT_ANEW
from tests.support.receiver import Receiver
from tests.support.stack import Stack

TRON_ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
SETTLE_SECONDS: Final = 60

# What the tables hold of the shop, by its ids.
OF_THE_SHOP: Final[Mapping[str, Mapping[str, str]]] = {
    "invoices": {
        "invoices": "merchant_id = %(merchant)s",
        "deals": "merchant_id = %(merchant)s",
        "deal_transitions": "deal_id::text = ANY(%(ids)s)",
        "requisites": "id::text = ANY(%(ids)s)",
        "cases": "merchant_id = %(merchant)s",
    },
    "withdrawals": {
        "withdrawal_methods": "id = 1",
        "withdrawals": "merchant_id = %(merchant)s",
        "accounts": "merchant_id = %(merchant)s",
        "transfers": "split_part(reference, ':', 2) = ANY(%(ids)s)",
    },
    "webhooks": {
        "events": "invoice_id::text = ANY(%(ids)s)",
        "attempts": "event_id IN (SELECT id FROM events WHERE invoice_id::text = ANY(%(ids)s))",
    },
}
KEYS: Final = {"cases": "number"}  # all others have "id"


@dataclass
class Shop:
    """The ids of a merchant's things: `of["sold"]`, `of["sold deal"]` ..."""

    stack: Stack
    merchant: str
    of: dict[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """For statements."""
        named = {name.replace(" ", "_"): id for name, id in self.of.items()}
        return named | {"merchant": self.merchant, "ids": list(self.of.values())}


def opened(fiatgate: Fiatgate, receiver: Receiver) -> Shop:
    """A purchase paid, one paid with less, one rejected, one canceled without a method and one that waits; a deal of
    which late money was told; withdrawals that wait, went out and failed. All of it settled, all of it right.
    """
    merchant = fiatgate(
        *("merchants", "create", "Tampered shop", "--owner", f"{new_id().hex}@shop.example", "--active"),
        *(
            "--category",
            "standard",
            "--callback-url",
            receiver.url(),
            "--success-url",
            "https://shop.example/",
        ),
        *("--fail-url", "https://shop.example/"),
    )["merchant_id"]
    key = fiatgate("keys", "create", merchant)["api_key"]
    shop = Shop(fiatgate.stack, merchant)
    for name in ("sold", "adjusted", "rejected", "late", "open", "canceled", "waiting"):
        shop.of[name] = _invoice(fiatgate, key, f"{300 + len(shop.of)}.10")
        if name not in ("canceled", "waiting"):
            deal = fiatgate("checkout", "select", shop.of[name], "sepa")["deal"]
            shop.of[f"{name} deal"] = deal["deal_id"]
            shop.of[f"{name} account"] = fiatgate("deals", "show", deal["deal_id"])["requisite_id"]
        if name in ("sold", "adjusted", "open"):
            fiatgate("checkout", "mark-paid", shop.of[name])
    fiatgate("deals", "confirm", shop.of["sold deal"], "--yes")
    fiatgate("deals", "appeal", shop.of["adjusted deal"])
    fiatgate.by_two("deals", "resolve", shop.of["adjusted deal"], "--amount", "200")
    fiatgate("deals", "reject", shop.of["rejected deal"])
    for name in ("late", "canceled"):
        fiatgate("checkout", "cancel", shop.of[name])
    told = invoices_pb2.OpenCaseRequest(invoice_id=shop.of["late"], note="I have paid")
    shop.of["case"] = str(connection.checkout().OpenCase(told).case.number)
    receiver.wait_for(5)
    _withdrawals(fiatgate, shop)
    shop.of["method"] = "withdrawal method 1"
    try:
        wait_until(
            lambda: run("verify", "--json", "--grace-seconds", "0").exit_code == 0,
            "everything to be settled",
            timeout_seconds=SETTLE_SECONDS,
        )
    except TimeoutError as late:
        late.add_note(run("verify").out)
        raise
    return shop


def _invoice(fiatgate: Fiatgate, key: str, amount: str) -> str:
    body = {
        "amount": amount,
        "currency_code": "EUR",
        "customer_id": new_id().hex,
        "external_id": new_id().hex,
    }
    answer = fiatgate.stack.request("POST", "/api/v1/create-invoice", api_key=key, json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["invoice_id"])


def _withdrawals(fiatgate: Fiatgate, shop: Shop) -> None:
    def credited() -> bool:
        return Decimal(fiatgate("balance", shop.merchant)["available"]) > 400

    wait_until(credited, "the credits", timeout_seconds=SETTLE_SECONDS)
    for name in ("pending", "paid", "failed"):
        create = ("withdrawals", "create", shop.merchant, "--method", "1", "--address", TRON_ADDRESS)
        shop.of[name] = fiatgate(*create, "--amount", "30")["withdraw_uuid"]
    fiatgate("withdrawals", "process", shop.of["paid"])
    fiatgate("withdrawals", "complete", shop.of["paid"], "--tx", new_id().hex * 2)
    fiatgate("withdrawals", "fail", shop.of["failed"])


class Backup:
    """The shop's rows as they were, held by connections of the superuser for whom no trigger fires."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._databases = {each: psycopg2.connect(shop.stack.superuser_url(each)) for each in OF_THE_SHOP}
        for service, tables in OF_THE_SHOP.items():
            with self._databases[service] as database, database.cursor() as cursor:
                cursor.execute("SET session_replication_role = replica")
                for table, which in tables.items():
                    copy = f"CREATE TEMPORARY TABLE saved_{table} AS SELECT * FROM {table} WHERE {which}"
                    cursor.execute(copy, shop.values())

    def close(self) -> None:
        for each in self._databases.values():
            each.close()

    def change(self, service: str, statement: str) -> int:
        """Past all triggers and rights; how many rows it changed."""
        with self._databases[service] as database, database.cursor() as cursor:
            cursor.execute(statement, self._shop.values())
            return int(cursor.rowcount)

    def restore(self, service: str) -> None:
        tables = OF_THE_SHOP[service]
        with self._databases[service] as database, database.cursor() as cursor:
            for table, which in reversed(list(tables.items())):
                key = KEYS.get(table, "id")
                known = f"({key}) IN (SELECT {key} FROM saved_{table})"
                cursor.execute(f"DELETE FROM {table} WHERE {which} OR {known}", self._shop.values())
            for table in tables:
                cursor.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM saved_{table}")
            if service == "invoices":  # the worker may have counted what was changed
                cursor.execute(COUNT_ANEW)


@contextmanager
def as_the_service(shop: Shop, service: str) -> Iterator[Any]:
    """A cursor with the rights of the service itself; committed at the end."""
    url = shop.stack.database_urls[service]
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        yield cursor


@dataclass(frozen=True)
class Tampering:
    """A change of the shop's rows, and the words that name it: of what (in `Shop.of`, or a text) and which field.
    One without `names` is refused by the rights of the service's role, and not named.

    by_service  whether the service's own role has the right to make it
    """

    name: str
    service: str
    statement: str
    of: str
    names: Sequence[str]
    by_service: bool = False
