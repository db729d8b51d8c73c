"""Acts for an operator: each change leaves one, `fiatgate audit` lists them, `fiatgate verify` checks them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg2
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from deploy.local.waiting import wait_until
from fiatgate.audit.v1 import audit_pb2
from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceStub
from kit.base.ids import new_id
from kit.base.services import SERVICES
from kit.rpc.errors import Refused
from tests.cli.command_line import Fiatgate, run
from tests.cli.terminal import shown
from tests.cli.test_operating import SETTLE_SECONDS, TRON_ADDRESS, create_invoice, shop
from tests.support.receiver import Receiver

__all__ = ["shop"]

CURRENCY: Final = "QQA"  # of this module alone


@pytest.fixture
def count(fiatgate: Fiatgate) -> Count:
    return Count(fiatgate)


class Count:
    """The acts of the command line in all databases."""

    def __init__(self, fiatgate: Fiatgate) -> None:
        self._fiatgate = fiatgate

    def now(self) -> list[str]:
        found: list[str] = []
        for service in self._fiatgate.stack.database_urls:
            found += [
                act
                for (act,) in execute(
                    self._fiatgate, service, "SELECT act FROM acts WHERE actor_kind = 'cli'"
                )
            ]
        return sorted(found)

    def of(self, *arguments: str) -> tuple[list[str], Any]:
        """Runs the command; returns the acts that it left, and its answer."""
        before = self.now()
        answer = self._fiatgate(*arguments)
        after = self.now()
        for each in before:
            after.remove(each)
        return after, answer


def execute(fiatgate: Fiatgate, service: str, statement: str) -> list[tuple[Any, ...]]:
    with (
        closing(psycopg2.connect(fiatgate.stack.superuser_url(service))) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_a_change_of_merchants_and_prices_leaves_exactly_one_act_and_none_when_nothing_changes(
    fiatgate: Fiatgate, count: Count
) -> None:
    owner = f"{new_id().hex}@shop.example"
    left, made = count.of("merchants", "create", "Corner shop", "--owner", owner)
    assert left == ["merchant.create"]
    id = made["merchant_id"]
    _, key = count.of("keys", "create", id, "--name", "till")
    code = f"c{new_id().hex[:12]}"
    method = (
        "methods",
        "set",
        "qqa-cash",
        "--currency",
        CURRENCY,
        "--name",
        "Cash",
        "--min",
        "5",
        "--max",
        "50",
    )
    for act, command in (
        ("merchant.configure", ("merchants", "set", id, "--name", "Lamp shop")),
        ("merchant.activate", ("merchants", "activate", id)),
        ("merchant.ban", ("merchants", "ban", id)),
        ("merchant.unban", ("merchants", "unban", id)),
        ("owner.block", ("owners", "block", owner)),
        ("owner.unblock", ("owners", "unblock", owner)),
        ("key.deactivate", ("keys", "deactivate", key["key_id"])),
        ("category.set", ("categories", "set", code, "--commission", "5")),
        (
            "currency.set",
            (
                *("currencies", "set", CURRENCY, "--name", "Quo", "--symbol", "Q", "--decimals", "2"),
                *("--min", "5", "--max", "500"),
            ),
        ),
        ("method.set", (*method, "--minutes", "20", "--commission", "1")),
        (
            "withdrawal-method.set",
            (
                *("withdrawals", "set-method", f"M-{code}", "--network", "TRC20", "--name", "USDT"),
                *("--fee", "1", "--min", "5"),
            ),
        ),
    ):
        assert count.of(*command)[0] == [act], command
        assert count.of(*command)[0] == [], f"nothing changed: {command}"
    assert count.of("rates", "set", CURRENCY, "50")[0] == ["rate.set"]
    assert set(count.of("rates", "pull")[0]) <= {"rate.pull"}

    wait_until(
        lambda: run("requisites", "add", "qqa-cash", "--holder", "A", "--account", "17").exit_code == 0,
        "invoices to know the method",
        timeout_seconds=SETTLE_SECONDS,
    )
    left, added = count.of("requisites", "add", "qqa-cash", "--holder", "A", "--account", "18")
    assert left == ["requisite.add"]
    for word in ("disable", "enable"):
        assert count.of("requisites", word, added["requisite_id"])[0] == [f"requisite.{word}"]
        assert count.of("requisites", word, added["requisite_id"])[0] == []


def test_a_step_of_a_deal_or_a_withdrawal_leaves_exactly_one_act(
    fiatgate: Fiatgate, count: Count, shop: dict[str, str], receiver: Receiver
) -> None:
    def deal(**changes: str) -> tuple[str, str]:
        id = create_invoice(fiatgate, shop, **changes)["invoice_id"]
        deal_id = fiatgate("checkout", "select", id, "eur-card")["deal"]["deal_id"]
        fiatgate("checkout", "mark-paid", id)
        return id, deal_id

    before = count.now()
    paid, confirmed = deal(callback_url=receiver.url())
    canceled = create_invoice(fiatgate, shop)["invoice_id"]
    assert count.now() == before, "the steps of merchants and customers are no acts"
    assert count.of("deals", "confirm", confirmed)[0] == ["deal.confirm"]
    assert count.of("invoices", "cancel", canceled)[0] == ["invoice.cancel"]
    assert count.of("invoices", "cancel", canceled)[0] == []
    _, appealed = deal()
    assert count.of("deals", "appeal", appealed, "--note", "look")[0] == ["deal.appeal"]
    assert count.of("deals", "resolve", appealed, "--reject")[0] == ["deal.resolve"]
    assert count.of("deals", "reject", deal()[1], "--note", "nothing came")[0] == ["deal.reject"]
    receiver.wait_for(1)
    assert count.of("webhooks", "resend", paid)[0] == ["event.resend"]

    merchant = shop["merchant_id"]
    wait_until(
        lambda: float(fiatgate("balance", merchant)["available"]) > 60,
        "the credit",
        timeout_seconds=SETTLE_SECONDS,
    )
    create = ("withdrawals", "create", merchant, "--method", "1", "--address", TRON_ADDRESS, "--amount", "20")
    key = str(new_id())
    left, first = count.of(*create, "--request-key", key)
    assert left == ["withdrawal.create"]
    assert count.of(*create, "--request-key", key)[0] == [], "a repeated request changes nothing"
    uuid = first["withdraw_uuid"]
    steps: list[tuple[str, tuple[str, ...]]] = [
        ("withdrawal.process", ("withdrawals", "process", uuid)),
        ("withdrawal.complete", ("withdrawals", "complete", uuid, "--tx", f"tx-{key}", "--yes")),
        ("withdrawal.fail", ("withdrawals", "fail", fiatgate(*create)["withdraw_uuid"])),
        ("withdrawal.cancel", ("withdrawals", "cancel", fiatgate(*create)["withdraw_uuid"])),
    ]
    for act, command in steps:
        assert count.of(*command)[0] == [act], command
        if act != "withdrawal.process":  # the command refuses a second one: a colleague may be sending it
            assert count.of(*command)[0] == [], f"nothing changed: {command}"


def test_acts_are_listed_by_author_object_act_and_merchant_and_fit_80_columns(
    fiatgate: Fiatgate, shop: dict[str, str]
) -> None:
    id = shop["merchant_id"]
    author = f"{new_id().hex}@example.com"
    fiatgate("merchants", "set", id, "--name", "=Lamp shop", "--as", author)
    (act,) = fiatgate("audit", "--author", author)
    assert (act["act"], act["object"], act["merchant_id"]) == ("merchant.configure", f"merchant:{id}", id)
    assert act["changes"] == [{"field": "name", "before": "Corner shop", "after": "=Lamp shop"}]
    assert (act["actor"]["kind"], act["actor"]["on_behalf_of"]) == ("cli", author)
    assert [each["act"] for each in fiatgate("audit", "--object", f"merchant:{id}")] == [
        "merchant.configure",
        "merchant.create",
    ]
    assert [each["act"] for each in fiatgate("audit", "--merchant", id, "--act", "key")] == ["key.create"]
    assert fiatgate("audit", "--author", author, "--until", act["at"]) == []
    assert fiatgate("audit", "--author", author, "--since", "1h") == [act]

    rows = list(csv.DictReader(io.StringIO(run("audit", "--author", author, "--csv").out)))
    assert [row["act_id"] for row in rows] == [act["act_id"]]
    assert rows[0]["changes"] == "name: Corner shop → =Lamp shop"

    screen = shown(fiatgate.stack.home.folder, "audit", "--merchant", id)
    assert screen.exit_code == 0
    assert max(map(len, screen.lines)) <= 80
    assert "configured merchant" in re.sub(r"\s+", " ", screen.text)


@contextmanager
def tampered(fiatgate: Fiatgate, service: str, act_id: str) -> Iterator[None]:
    """The act says something else inside the block, as the owner of the database can make it with triggers off."""
    set_note = f"SET session_replication_role = replica; UPDATE acts SET note = '{{}}' WHERE id = '{act_id}'"
    execute(fiatgate, service, set_note.format("invented"))
    try:
        yield
    finally:
        execute(fiatgate, service, set_note.format(""))


def test_a_time_that_is_none_is_refused(fiatgate: Fiatgate) -> None:
    until = Timestamp(seconds=2**62)
    with fiatgate.stack.channel("catalog") as channel, pytest.raises(Refused) as refused:
        AuditServiceStub(channel).ListActs(audit_pb2.ListActsRequest(until=until, limit=1))
    assert refused.value.reason == "VALIDATION_ERROR"


def test_verify_names_an_act_that_was_changed_and_checks_exported_heads(
    fiatgate: Fiatgate, shop: dict[str, str], tmp_path: Path
) -> None:
    def acts_wrong(*options: str) -> list[str]:
        report = json.loads(run("verify", "--grace-seconds", "3600", *options, "--json").out)
        return [each["text"] for each in report["problems"] if each["check"] == "acts"]

    def is_chained() -> bool:
        return bool(json.loads(run("verify", "--json").out)["unchained"] == 0)

    wait_until(is_chained, "the acts to be chained", timeout_seconds=SETTLE_SECONDS)
    (act,) = fiatgate("audit", "--object", f"merchant:{shop['merchant_id']}", "--act", "merchant.create")
    heads = fiatgate("audit", "heads")
    assert {each["service"] for each in heads["heads"]} >= {"identity"}
    file = tmp_path / "heads.json"
    file.write_text(json.dumps(heads))
    assert acts_wrong("--heads", str(file)) == []

    with tampered(fiatgate, "identity", act["act_id"]):
        (problem,) = acts_wrong()
    assert f"identity: act {act['act_id']} (merchant.create" in problem
    assert acts_wrong() == []

    heads["heads"] = [each | {"count": each["count"] + 1_000_000} for each in heads["heads"]]
    file.write_text(json.dumps(heads))
    assert all("acts were removed at its end" in each for each in acts_wrong("--heads", str(file)))
    assert len(acts_wrong("--heads", str(file))) == len(heads["heads"])
    file.write_text("[]")
    assert run("verify", "--heads", str(file)).exit_code == 2


def test_an_operator_has_the_others_keep_a_head_anew(fiatgate: Fiatgate, count: Count) -> None:
    replica = "SET session_replication_role = replica;"
    execute(fiatgate, "identity", f"{replica} UPDATE act_heads SET count = 10^9 WHERE service = 'catalog'")
    left, _ = count.of("audit", "restart-head", "catalog", "--note", "Restored a backup")
    assert left == ["heads.restart"]
    for service in set(SERVICES) - {"identity"}:
        execute(fiatgate, service, f"{replica} DELETE FROM act_heads")
    left, _ = count.of("audit", "restart-head", "identity", "--note", "Restored a backup")
    assert set(left) == {"heads.restart"}
    report = json.loads(run("verify", "--grace-seconds", "3600", "--json").out)
    assert [each for each in report["problems"] if each["check"] == "acts"] == []
    assert run("audit", "restart-head", "nobody", "--note", "x").exit_code == 2
