"""A stack with something of everything, for the attacks: people, merchants, payments and withdrawals, all settled."""

from __future__ import annotations

import json
from contextlib import closing
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import psycopg2

from cli import acts
from deploy.local.waiting import wait_until
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.base.services import SERVICES
from tests.cli.command_line import Fiatgate, run
from tests.support.receiver import Receiver
from tests.support.stack import Stack
from tests.support.visitors import Visitor

TRON_ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
SETTLE_SECONDS: Final = 30
FORGED: Final = (
    *("link", "recovery", "passkey", "session", "key", "act", "request", "api_key", "deal", "account"),
    *("withdrawal", "address", "connector", "line"),
)


class Shop:
    """`ids` has the things by the names that attacks use."""

    def __init__(self, stack: Stack, receiver: Receiver) -> None:
        self.stack = stack
        self._fiatgate = Fiatgate(stack)
        self.ids: dict[str, str] = {f"forged_{name}": str(new_id()) for name in FORGED}
        self.ids["canceled_by_nobody"] = str(new_id())
        self._merchants(receiver)
        self._people()
        self._payments()
        for word in ("off", "on"):
            self._fiatgate("deals", "system", word)
        self._withdrawals()
        self._addresses_to_pay_out_to()
        self._fiatgate("rates", "set", "EUR", "0.92")
        self._accounts_to_pay_to()
        self._fiatgate("webhooks", "resend", self.ids["sold"])
        try:
            wait_until(self._is_settled, "right books and kept heads", timeout_seconds=SETTLE_SECONDS)
        except TimeoutError as late:
            late.add_note(self.behind)
            raise

    def verified(self) -> dict[str, Any]:
        """The report of `fiatgate verify`."""
        ended = run("verify", "--json", "--grace-seconds", "0")
        assert ended.err == "", ended.err
        report: dict[str, Any] = json.loads(ended.out)
        return report | {"exit_code": ended.exit_code}

    def row(self, service: str, sql: str) -> str:
        """The one value of a query, read as the superuser."""
        with (
            closing(psycopg2.connect(self.stack.superuser_url(service))) as database,
            database.cursor() as cursor,
        ):
            cursor.execute(sql, self.ids)
            (value,) = cursor.fetchone() or (None,)
            return str(value)

    def _merchants(self, receiver: Receiver) -> None:
        self.ids["blocked_owner"] = f"{new_id().hex}@shop.example"
        for name, owner in (("merchant", "owner@shop.example"), ("banned", self.ids["blocked_owner"])):
            made = self._fiatgate(
                *("merchants", "create", name, "--owner", owner, "--active", "--category", "standard"),
                *("--callback-url", receiver.url(), "--success-url", "https://shop.example/"),
                *("--fail-url", "https://shop.example/"),
            )
            self.ids[name] = made["merchant_id"]
        self._fiatgate("merchants", "ban", self.ids["banned"])
        self._fiatgate("owners", "block", self.ids["blocked_owner"])
        self._key = self._fiatgate("keys", "create", self.ids["merchant"])["api_key"]
        self.ids["dead_key"] = self._fiatgate("keys", "create", self.ids["merchant"])["key_id"]
        self._fiatgate("keys", "deactivate", self.ids["dead_key"])

    def _people(self) -> None:
        for name, role in (
            *(("viewer", "viewer"), ("disabled", "viewer"), ("deleted", "viewer")),
            *(("renamed", "viewer"), ("admin", "admin")),
        ):
            self.ids[f"{name}_email"] = f"{name}@fiatgate.example"
            invite = ("people", "invite", self.ids[f"{name}_email"], "--name", name, "--role", role)
            link = self._fiatgate.by_two_if_needed(*invite)["link"]
            visitor = Visitor.by_link("desk", link.partition("/invitation")[0], link)
            if name == "disabled":
                visitor.set_password("tundra violin obelisk")
            person = self._fiatgate("people", "show", self.ids[f"{name}_email"])
            self.ids[name] = person["person_id"]
        self._fiatgate("people", "disable", self.ids["disabled"])
        for name in ("admin", "viewer"):
            session = f"SELECT id FROM sessions WHERE person_id = %({name})s"
            self.ids[f"{name}_session"] = self.row("identity", session)
        invite = ("people", "invite", "member@shop.example", "--name", "member", "--role", "viewer")
        invited = self._fiatgate(*invite, "--merchant", self.ids["merchant"])["invitation"]
        self.ids["invitation"] = invited["invitation_id"]

    def _payments(self) -> None:
        for number, name in enumerate(
            ("sold", "adjusted", "rejected", "erased", "open", "asked", "canceled", "waiting", "appealed")
        ):
            self.ids[name] = self._invoice(f"{300 + number}.10")
            if name in ("canceled", "waiting"):
                continue
            deal = self._fiatgate("checkout", "select", self.ids[name], "sepa")["deal"]
            self.ids[f"{name}_deal"] = deal["deal_id"]
            if name in ("sold", "adjusted", "erased", "open"):
                self._fiatgate("checkout", "mark-paid", self.ids[name])
        self._fiatgate("deals", "appeal", self.ids["appealed_deal"])
        for name in ("sold", "erased"):
            self._fiatgate("deals", "confirm", self.ids[f"{name}_deal"], "--yes")
        self._fiatgate("deals", "appeal", self.ids["adjusted_deal"])
        lower = ("deals", "resolve", self.ids["adjusted_deal"], "--amount", "150")
        assert self._fiatgate.refused(*lower) == "APPROVAL_REQUIRED"
        (asked,) = self._fiatgate("approvals", "list", "--object", f"deal:{self.ids['adjusted_deal']}")
        self.ids["rejected_request"] = asked["approval_id"]
        self._fiatgate("approvals", "reject", self.ids["rejected_request"])
        self._fiatgate.by_two("deals", "resolve", self.ids["adjusted_deal"], "--amount", "200")
        self._fiatgate("deals", "reject", self.ids["rejected_deal"])
        self._fiatgate("checkout", "cancel", self.ids["canceled"])

    def _invoice(self, amount: str) -> str:
        body = {
            "amount": amount,
            "currency_code": "EUR",
            "customer_id": new_id().hex,
            "external_id": new_id().hex,
        }
        answer = self.stack.request("POST", "/api/v1/create-invoice", api_key=self._key, json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["invoice_id"])

    def _withdrawals(self) -> None:
        def credited() -> bool:
            return Decimal(self._fiatgate("balance", self.ids["merchant"])["available"]) > 800

        wait_until(credited, "the credits", timeout_seconds=SETTLE_SECONDS)
        for name, amount in (("small", "20"), ("large", "500"), ("paid", "30"), ("gone", "31")):
            create = (
                "withdrawals",
                "create",
                self.ids["merchant"],
                "--method",
                "1",
                "--address",
                TRON_ADDRESS,
            )
            self.ids[name] = self._fiatgate(*create, "--amount", amount)["withdraw_uuid"]
        for name in ("paid", "gone"):
            self._fiatgate("withdrawals", "process", self.ids[name])
            self._fiatgate("withdrawals", "complete", self.ids[name], "--tx", new_id().hex * 2)

    def _addresses_to_pay_out_to(self) -> None:
        for name in ("address", "named_address"):
            id, at = new_id(), SystemClock().now()
            self.ids[name] = str(id)
            decided = {"name": name, "method_id": 1, "network": "TRC20", "address": name, "added_by": "mia"}
            self.stack.decide(
                "withdrawals",
                "INSERT INTO withdrawal_addresses VALUES (:id, :merchant, 1, 'TRC20', :name, NULL, :name, 'mia',"
                " :at, :at)",
                "withdrawal-address.add",
                f"withdrawal-address:{id}",
                decided | {"usable_at": at},
                merchant_id=UUID(self.ids["merchant"]),
                merchant=self.ids["merchant"],
                id=id,
                name=name,
                at=at,
            )

    def _accounts_to_pay_to(self) -> None:
        for name, iban in (
            ("disabled_account", "DE44500105175407324931"),
            ("unused_account", "DE44500105170445678901"),
        ):
            add = ("requisites", "add", "sepa", "--holder", "Shop", "--account", iban)
            self.ids[name] = self._fiatgate(*add)["requisite_id"]
            self._fiatgate("requisites", "disable", self.ids[name])

    def _is_settled(self) -> bool:
        """Whether the books are right and every head is kept elsewhere. AssertionError for a problem that stays."""
        report = self.verified()
        problems = [each["text"] for each in report["problems"]]
        assert all("credited" in each or "event" in each for each in problems), problems
        kept = {each.service: each.count for each in acts.head_of("identity").kept if each.count}
        own = {service: acts.head_of(service).head.count for service in SERVICES if service != "identity"}
        self.behind = f"{report}, kept {kept}, own {own}"
        return bool(report["ok"]) and report["unchained"] == 0 and kept == {k: v for k, v in own.items() if v}
