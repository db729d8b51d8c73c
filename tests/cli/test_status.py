"""`fiatgate status`: what runs, what waits, and for how long, on one screen that renews itself."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading

import pytest
from rich.console import Console

from cli import connection, output
from cli.commands import status
from deploy.local import child
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.status.v1 import status_pb2
from kit.base.clock import monotonic_seconds
from kit.rpc import health
from tests.cli.command_line import Fiatgate, run

SETTLE_SECONDS = 30
ROWS, COLUMNS = 35, 120
LOOPS = {"relay", "withdrawals-invoices-finished", "webhooks-invoices-finished", "delivery", "retention"}
GAUGES = {
    "invoices": {"outbox_unpublished", "outbox_oldest_seconds"},
    "withdrawals": {"parked"},
    "webhooks": {"webhooks_due", "oldest_undelivered_seconds", "parked"},
}


def _wait_until_well() -> None:
    wait_until(
        lambda: run("status", "--json").exit_code == 0,
        "everything to be well",
        timeout_seconds=SETTLE_SECONDS,
    )


def _loops_that_went_round(shown: str) -> set[str]:
    """Those that are shown with the time since."""
    return {name for name in LOOPS if re.search(rf"\b{name}\s+\d+(s|min|h|d)\b", shown)}


def test_it_shows_what_waits_and_when_each_loop_last_went_round(fiatgate: Fiatgate) -> None:
    _wait_until_well()
    services = {each["service"]: each for each in fiatgate("status")}
    shown = fiatgate.shown("status")
    for service, names in GAUGES.items():
        assert {gauge["name"] for gauge in services[service]["gauges"]} >= names
        assert all(f"{name}=" in shown for name in names)
        assert services[service]["mode"] == "test" and "Test mode" in shown
    wait_until(
        lambda: _loops_that_went_round(fiatgate.shown("status")) >= LOOPS,
        "every loop's age",
        timeout_seconds=SETTLE_SECONDS,
    )


def test_on_a_terminal_all_of_it_fits_and_is_looked_at_again_until_ctrl_c(fiatgate: Fiatgate) -> None:
    _wait_until_well()
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    size = {
        "LINES": str(ROWS),
        "COLUMNS": str(COLUMNS),
    }  # a process of `pytest -n` has others in its environment
    watching = subprocess.Popen(
        child.command(sys.executable, "-m", "cli", "status", "--watch"),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env=os.environ | {"TERM": "xterm"} | size,
        start_new_session=True,
    )
    os.close(inside)
    seen = b""
    until_seconds = monotonic_seconds() + SETTLE_SECONDS
    try:
        while len(set(re.findall(rb"\d\d:\d\d:\d\d UTC", seen))) < 2 and monotonic_seconds() < until_seconds:
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 65536)
        watching.send_signal(signal.SIGINT)
        exit_code = watching.wait(SETTLE_SECONDS)
    finally:
        watching.kill()
        watching.wait()
        os.close(terminal)
    times = re.findall(rb"\d\d:\d\d:\d\d UTC", seen)
    assert len(set(times)) >= 2, seen.decode()
    assert all(name in seen for name in (b"gateway", b"identity", b"oldest_undelivered_seconds"))
    assert exit_code == 0


def test_a_narrow_window_cuts_nothing_short_and_begins_with_what_is_ill(
    fiatgate: Fiatgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wait_until_well()
    monkeypatch.setenv("FIATGATE_WEBHOOKS_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr(output, "console", Console(highlight=False, width=50))
    shown = run("status").out
    assert "\u2026" not in shown
    rows = shown.partition("\u2500\n")[2]
    assert rows.split()[:2] == ["webhooks", "ill"]


def test_where_there_is_no_screen_the_looks_follow_each_other(fiatgate: Fiatgate) -> None:
    command = child.command(sys.executable, "-m", "cli", "status", "--watch")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        given_up = threading.Timer(SETTLE_SECONDS, watching.kill)
        given_up.start()
        heads = (line for line in watching.stdout if line.startswith(" service"))
        assert [next(heads).split() for _ in range(2)] == [["service", "up", "workers", "and", "numbers"]] * 2
        watching.send_signal(signal.SIGINT)
        assert watching.wait(SETTLE_SECONDS) == 0
        given_up.cancel()


@pytest.mark.parametrize(
    ("detail", "shown"),
    [
        ("NATS refuses the password of this process", "nats away: NATS refuses the password of this process"),
        ("", "nats away"),
    ],
)
def test_a_refused_password_is_no_outage_of_nats(detail: str, shown: str) -> None:
    answer = status_pb2.GetStatusResponse(
        service="webhooks",
        database_ok=True,
        workers=[status_pb2.WorkerStatus(name="bus", healthy=True, detail=detail)],
    )
    first = next(health.lines_of(answer, age=lambda worker: "-"))
    assert "".join(part.text for part in first.parts) == shown
    assert status.shown(first).startswith(f"[bold red]{shown}[/bold red]")


def test_a_number_that_asks_for_a_step_is_a_state_of_its_own() -> None:
    gauge = status_pb2.Gauge(name="rates_end_soon", value=1, unit="count", step="Set it again.")
    answer = status_pb2.GetStatusResponse(service="catalog", database_ok=True, nats_ok=True, gauges=[gauge])
    assert (health.state_of(answer), health.is_well(answer)) == (health.ATTENTION, True)
    (line,) = health.lines_of(answer, age=lambda worker: "-")
    assert status.shown(line) == "[bold red]rates_end_soon=1[/bold red]\n[dim]Set it again.[/dim]"
    gauge.value = 0
    answer = status_pb2.GetStatusResponse(service="catalog", database_ok=True, nats_ok=True, gauges=[gauge])
    assert health.state_of(answer) == health.WELL


def test_processes_are_reached_at_the_addresses_inside_where_those_are_set(
    fiatgate: Fiatgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster the public address leads out of it, where the pod of this command reaches nothing."""
    _wait_until_well()
    inside = {
        each: connection.internal_console_urls()[f"console-{each.lower()}"] for each in ("DESK", "DASHBOARD")
    }
    inside["GATEWAY"] = connection.internal_gateway_url()
    nowhere = f"http://127.0.0.1:{free_ports(1)[0]}"
    for outside in ("PUBLIC_URL", "DESK_URL", "DASHBOARD_URL"):
        monkeypatch.setenv(f"FIATGATE_{outside}", nowhere)
    away = {each["service"] for each in json.loads(run("status", "--json").out) if not each["healthy"]}
    assert away == {"gateway", "console-desk", "console-dashboard"}
    for site, url in inside.items():
        monkeypatch.setenv(f"FIATGATE_INTERNAL_{site}_URL", url)
    assert all(each["healthy"] for each in fiatgate("status"))
