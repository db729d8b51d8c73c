"""One round: load, a base backup under it, more load, a loss, the restore, the verification, and load again."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg2

from deploy.local.postgres import Postgres
from deploy.local.waiting import wait_until
from kit.base.clock import SystemClock, monotonic_seconds
from tests.e2e.market import Shop
from tests.faults import checker
from tests.faults.journal import Journal, NotingReceiver, lines
from tests.faults.shoppers import Shoppers
from tests.restore import compare
from tests.restore.backups import Backups, copy_database, running
from tests.support.stack import CliRefused, Stack

SHOPPERS: Final = 4
SETTLE_SECONDS: Final = 90
SETTINGS: Final = {"FIATGATE_INVOICE_TTL_SECONDS": "10", "FIATGATE_WEBHOOK_RETRY_DELAYS": "1,1,1,2,2,3,3"}
AMOUNT: Final = "25"
ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
_ID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_IDS: Final = re.compile(_ID)
_INVOICES: Final = re.compile(rf"\binvoice[ :]({_ID})")
_numbers = itertools.count(1)

Report = Mapping[str, Any]
Tell = Callable[[str], None]


class Loss(StrEnum):
    """What is lost, and so what is restored: the whole server, or one of its databases to an earlier time."""

    DISK = "disk"
    """PostgreSQL is killed and its folder deleted: restored is all that was archived."""
    MISTAKE = "mistake"
    """The rows of a table are deleted: restored is the moment before."""
    INVOICES = "invoices"
    WITHDRAWALS = "withdrawals"
    WEBHOOKS = "webhooks"


WHOLE: Final = (Loss.DISK, Loss.MISTAKE)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A withdrawal that was open at the restore point and ended after it, by `fiatgate withdrawals COMMAND`.

    sign  what `fiatgate verify --since` has to tell the operator to look at before sending it
    """

    id: str
    command: Sequence[str]
    sign: str


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one round came to. `named` are the invoices that verify named first, `by_hand` those that it could not end
    as their facts say, `left` the problems in the end.
    """

    loss: Loss
    backup_mib: float
    behind_seconds: float
    restore_seconds: float
    outcome: compare.Outcome
    beyond: int
    named: int
    restored: int
    by_hand: int
    left: int
    looked_up: int
    violations: Sequence[str]
    named_ids: set[str] = field(repr=False)
    seen: checker.Evidence = field(repr=False)


class World:
    """A stack whose PostgreSQL archives its WAL. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = Stack(folder / "home", settings=SETTINGS, durable=True)
        self.backups = Backups(folder / "backups")
        # Invoices that earlier rounds have lost or left to a person: verify goes on naming them.
        self.named: set[str] = set()

    def __enter__(self) -> World:
        try:
            self.stack.start()
            self.backups.archive(self.admin_url("postgres"))
            self.stack.restart("postgres")
            wait_until(self.server.is_ready, "PostgreSQL to answer", timeout_seconds=60)
            self.stack.wait_until_ready()
        except BaseException:
            self.stack.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.stop()

    def admin_url(self, database: str) -> str:
        return self.server.url(database)

    @property
    def data(self) -> Path:
        """The folder of the stack's PostgreSQL."""
        return self.stack.home.postgres / "data"

    @property
    def server(self) -> Postgres:
        """The running stack's PostgreSQL, as its superuser."""
        port = psycopg2.extensions.parse_dsn(self.stack.home.running_stack()["postgres_url"])["port"]
        return Postgres(data=self.data, port=int(port), password=self.stack.home.secrets()["postgres"])

    def lose_disk(self) -> None:
        """Takes the folder away under the running server, then kills it."""
        process_id = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        main = next(each for each in psutil.process_iter() if _is_postmaster(each, process_id, self.data))
        servers = [main, *main.children(recursive=True)]
        self.data.rename(self.data.with_name("lost"))
        for each in servers:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        shutil.rmtree(self.data.with_name("lost"), ignore_errors=True)


def run_round(world: World, loss: Loss, *, seconds: float, beyond_seconds: float, tell: Tell) -> Figures:
    """Runs one loss on a running stack, which runs again at the end."""
    return _Round(world, loss, tell).run(seconds, beyond_seconds)


class _Round:
    def __init__(self, world: World, loss: Loss, tell: Tell) -> None:
        self._world = world
        self._loss = loss
        self._tell = tell
        self._number = next(_numbers)
        self._open: set[str] = set()
        self._ended: list[Ended] = []
        self._shop = Shop.opened(world.stack)
        names = ("clients", "receiver")
        self._clients, self._received = (
            Journal(world.folder / f"{self._number}-{loss}-{name}.jsonl") for name in names
        )

    def run(self, seconds: float, beyond_seconds: float) -> Figures:
        world, stack = self._world, self._world.stack
        with NotingReceiver(self._received) as endpoint:
            size, target = self._trade(endpoint.url(), seconds, beyond_seconds)
            lost_at = SystemClock().now()
            if self._loss is Loss.DISK:
                world.lose_disk()
            else:
                world.backups.archive_all(world.admin_url("postgres"))
            stack.stop()
            before = list(lines(self._received.path))
            began = monotonic_seconds()
            restored_to, statuses = self._restore(None if self._loss is Loss.DISK else target)
            restore_seconds = monotonic_seconds() - began
            self._tell(f"restored to {restored_to:%H:%M:%S.%f} in {restore_seconds:.1f} s")
            first = self._repair(restored_to)
            beyond = compare.beyond(before, statuses)
            stack.start()
            self._end_again()
            self._settle()
            if self._loss not in WHOLE:
                stack.cli("audit", "restart-head", str(self._loss), "--note", "restored")
                stack.cli("bank", "repair")
            self._load(endpoint.url(), 2.0)
            self._settle()
            last = report(stack, "verify", "--grace-seconds", "0")
        return self._figures(
            backup_mib=size / 2**20,
            behind_seconds=(lost_at - restored_to).total_seconds(),
            restore_seconds=restore_seconds,
            restored_to=restored_to,
            before=before,
            beyond=beyond,
            first=first,
            last=last,
        )

    # -- before the loss

    def _trade(self, callback: str, seconds: float, beyond_seconds: float) -> tuple[int, datetime]:
        """Buys, and backs up meanwhile; returns the size of the backup and the restore point. One withdrawal is sent
        after it, another canceled.
        """
        world, stack = self._world, self._world.stack
        stop = threading.Event()
        with self._shoppers(callback) as shoppers:
            threads = shoppers.shop_until(stop, seed=self._number, count=SHOPPERS)
            stop.wait(seconds / 2)
            size = world.backups.take(world.server)
            self._tell(f"base backup under load: {size / 2**20:.0f} MiB")
            stop.wait(seconds / 2)
            sent, canceled = self._withdrawal(), self._withdrawal()
            stack.cli("withdrawals", "process", sent)
            self._ended = [
                Ended(id=sent, command=("complete", sent, "--tx", f"{self._number:064x}"), sign="address"),
                Ended(id=canceled, command=("cancel", canceled, "--by-user"), sign="CancelWithdrawal"),
            ]
            target = _now(world.admin_url("postgres"))
            if self._loss is Loss.DISK:  # the disk takes what was not archived yet: this must not be among it
                world.backups.archive_all(world.admin_url("postgres"))
            if self._loss is Loss.MISTAKE:
                self._tell(f"deleted {_mistake(world.admin_url('invoices'))} rows of deals")
            for each in self._ended:
                stack.cli("withdrawals", *each.command)
            stop.wait(beyond_seconds)
            stop.set()
        for thread in threads:
            thread.join(30)
        return size, target

    def _shoppers(self, callback: str) -> Shoppers:
        addresses = self._world.stack.addresses
        return Shoppers([self._shop], services=addresses, callback=callback, journal=self._clients)

    def _withdrawal(self) -> str:
        stack, merchant = self._world.stack, self._shop.merchant_id
        wait_until(
            lambda: float(stack.cli("balance", merchant)["available"]) > float(AMOUNT),
            "a balance",
            timeout_seconds=60,
            every_seconds=0.5,
        )
        made = stack.cli(
            *("withdrawals", "create", merchant, "--method", "1", "--address", ADDRESS, "--amount", AMOUNT)
        )
        return str(made["withdraw_uuid"])

    # -- after it

    def _restore(self, until: datetime | None) -> tuple[datetime, Mapping[str, str]]:
        """Returns the time of the last commit that was restored, and the statuses of the invoices then."""
        world, password = self._world, self._world.stack.home.secrets()["postgres"]
        if self._loss in WHOLE:
            shutil.rmtree(world.data, ignore_errors=True)
            world.backups.restore(world.data, until=until)
            with world.backups.recovered(world.data, password=password) as (server, at):
                self._look_at_withdrawals(server)
                return at, _statuses(server.url("invoices"))
        side = world.folder / f"{self._number}-side"
        world.backups.restore(side, until=until, archives=False)
        log = world.folder / "server.log"
        with (
            world.backups.recovered(side, password=password) as (server, at),
            running(world.data, password=password, log=log) as target,
        ):
            copy_database(self._loss, of=server, to=target, file=world.folder / f"{self._number}.dump")
            self._look_at_withdrawals(target)
            statuses = _statuses(target.url("invoices"))
        shutil.rmtree(side)
        return at, statuses

    def _look_at_withdrawals(self, server: Postgres) -> None:
        """Notes which withdrawals the restored database has as open, so that an operator would send them."""
        self._open = _ids(server.url("withdrawals"), "SELECT id FROM withdrawals WHERE status = 'pending'")

    def _repair(self, restored_to: datetime) -> Report:
        """Starts the stack without workers, and verifies and repairs before time or an operator ends anything anew."""
        stack, since = self._world.stack, restored_to.isoformat()
        stack.start(serve_only=True)
        try:
            first = report(stack, "verify", "--since", since, "--grace-seconds", "0")
            mended = report(
                stack,
                *("verify", "--since", since, "--grace-seconds", "0", "--repair", "--repair-seconds", "1"),
            )
        finally:
            stack.stop()
        self._tell(f"{len(first['problems'])} problems found, {len(mended['repaired'])} repaired")
        return {**first, "repaired": mended["repaired"], "unlike": mended["unlike"]}

    def _end_again(self) -> None:
        """Ends the withdrawals whose ends were lost, as an operator does who has looked them up."""
        for each in self._ended:
            if each.id in self._open:
                self._world.stack.cli("withdrawals", *each.command)

    def _load(self, callback: str, seconds: float) -> None:
        stop = threading.Event()
        with self._shoppers(callback) as shoppers:
            threads = shoppers.shop_until(stop, seed=-self._number, count=SHOPPERS)
            stop.wait(seconds)
            stop.set()
            for thread in threads:
                thread.join(60)

    def _settle(self) -> None:
        left = ""

        def settled() -> bool:
            nonlocal left
            left = unsettled(self._world.admin_url, self._shop.merchant_id)
            return not left

        try:
            wait_until(settled, "all to settle", timeout_seconds=SETTLE_SECONDS, every_seconds=0.2)
        except TimeoutError:
            self._tell(f"not settled after {SETTLE_SECONDS} s: {left}")

    def _figures(
        self,
        *,
        restored_to: datetime,
        before: Sequence[Mapping[str, Any]],
        beyond: set[str],
        first: Report,
        last: Report,
        **measured: float,
    ) -> Figures:
        self._clients.close()
        self._received.close()
        seen = checker.evidence(
            self._world.admin_url,
            secrets={self._shop.merchant_id: self._shop.secret},
            clients=self._clients.path,
            receiver=self._received.path,
        )
        named = ids_in(first)
        outcome = compare.outcome(
            seen,
            until_seconds=monotonic_seconds() - (SystemClock().now() - restored_to).total_seconds(),
            before=before,
            accounted_for=named,
        )
        by_hand = set(first["unlike"])
        left = [each for each in last["problems"] if not ids_in({"problems": [each]}) & self._world.named]
        self._world.named |= set(outcome.lost) | by_hand
        wrong = [each for each in left if not ids_in({"problems": [each]}) & self._world.named]
        violations = [
            *(each for each in outcome.violations if not set(_IDS.findall(each)) & by_hand),
            *(
                f"{id}: its merchant knows more than invoices, and verify did not name it"
                for id in beyond - named
            ),
            *(f"verify in the end: {each['check']}: {each['text']}" for each in wrong),
            *not_told([each for each in self._ended if each.id in self._open], first["to_look_up"]),
        ]
        return Figures(
            loss=self._loss,
            outcome=outcome,
            beyond=len(beyond),
            named=len(named),
            restored=len(first["repaired"]),
            by_hand=len(by_hand),
            left=len(left),
            looked_up=len(first["to_look_up"]),
            violations=violations,
            named_ids=named,
            seen=seen,
            **measured,
        )


def report(stack: Stack, *arguments: str) -> Report:
    """What `fiatgate verify --json` prints, whether all is right or not."""
    try:
        printed: Report = stack.cli(*arguments)
    except CliRefused as wrong:
        printed, _ = json.JSONDecoder().raw_decode(wrong.output)
    return printed


def not_told(open_again: Sequence[Ended], to_look_up: Sequence[str]) -> list[str]:
    """Returns a line for each of these withdrawals which an operator would send after what verify says of it."""
    return [
        f"withdrawal {each.id} is open again after `{' '.join(each.command)}`, and verify does not say "
        f"where to look: {each.sign}"
        for each in open_again
        if not any(each.id in line and each.sign in line for line in to_look_up)
    ]


def ids_in(found: Report) -> set[str]:
    """Returns the invoices that the problems name. Sentences also name merchants, deals and events."""
    return {id for each in found["problems"] for id in _INVOICES.findall(each["text"])}


def _is_postmaster(process: psutil.Process, process_id: int, data: Path) -> bool:
    """In a namespace of its own the server may not know its process id here: it is found by its folder too."""
    with suppress(psutil.Error):
        arguments = process.cmdline()
        return bool(arguments) and arguments[0].endswith("/postgres") and str(data) in arguments
    return process.pid == process_id


def _mistake(url: str) -> int:
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "SET session_replication_role = replica"
        )  # no trigger and no foreign key holds it back
        cursor.execute("DELETE FROM deals")
        return int(cursor.rowcount)


def _now(url: str) -> datetime:
    return datetime.fromisoformat(str(_rows(url, "SELECT clock_timestamp()")[0][0]))


def _statuses(url: str) -> Mapping[str, str]:
    return {str(id): status for id, status in _rows(url, "SELECT id, status FROM invoices")}


def _rows(url: str, query: str) -> list[Any]:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _ids(url: str, query: str) -> set[str]:
    return {str(id) for (id,) in _rows(url, query)}


def unsettled(admin_url: Callable[[str], str], merchant_id: str) -> str:
    """What is still on its way; webhooks and credits of forgotten invoices do not count."""
    invoices, webhooks, withdrawals = (admin_url(name) for name in ("invoices", "webhooks", "withdrawals"))
    of = f"merchant_id = '{merchant_id}'"
    open_ones = f"SELECT id FROM invoices WHERE status = 'pending' AND deal_id IS NULL AND {of}"
    waiting = {
        "facts unpublished": _ids(invoices, "SELECT id FROM outbox WHERE published_at IS NULL"),
        "invoices open": _ids(invoices, open_ones),
        "webhooks undelivered": _ids(webhooks, f"SELECT id FROM events WHERE status = 'pending' AND {of}"),
        "events missing": _ids(invoices, f"SELECT id FROM invoices WHERE status <> 'pending' AND {of}")
        - _ids(webhooks, f"SELECT invoice_id FROM events WHERE {of}"),
        "credits missing": _ids(invoices, f"SELECT invoice_id FROM deals WHERE merchant_usdt > 0 AND {of}")
        - _ids(withdrawals, "SELECT split_part(reference, ':', 2) FROM transfers"),
    }
    return ", ".join(f"{len(rows)} {what}" for what, rows in waiting.items() if rows)
