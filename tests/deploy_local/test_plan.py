"""What a stack consists of: the caller's settings win, and no process gets more than it needs."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from console.config import DashboardSettings, DeskSettings
from deploy.local import ports
from deploy.local.errors import CannotStart
from deploy.local.home import Home
from deploy.local.plan import HTTP, Plan, make_plan
from deploy.local.ports import free_ports, free_range, next_free
from deploy.nats_rights import PROCESSES
from kit.base.config.variables import variables_of
from kit.base.services import SERVICES
from kit.events.signing import Signer
from tests.support.signing import SIGNING_KEY
from tests.support.stack import ports_of_process


def plan_for(folder: Path, caller: dict[str, str]) -> Plan:
    home = Home(folder)
    home.prepare()
    return make_plan(home, port=18080, caller=caller)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_for(tmp_path, {"PATH": "/bin", "FIATGATE_CUSTOMER_LIMIT": "7", "FIATGATE_LOG_LEVEL": ""})


def test_the_callers_settings_reach_every_process(plan: Plan) -> None:
    assert plan.environment["FIATGATE_CUSTOMER_LIMIT"] == "7"
    assert "FIATGATE_LOG_LEVEL" not in plan.environment  # empty counts as unset
    assert "PATH" not in plan.environment
    assert plan.environment["FIATGATE_ADDRESS_WAIT_SECONDS"] == "60", "docs/operations/install.md"


def test_to_look_at_restored_databases_nothing_with_http_starts(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()
    looking = make_plan(home, port=18080, caller={}, mode="serve")
    programs = {program.name: program for program in looking.programs}
    assert set(programs) == {"postgres", "nats", "demo-rates", *SERVICES}
    assert all(programs[service].command[-1] == "serve" for service in SERVICES)
    assert looking.probed == []


def test_the_callers_settings_win_over_the_stacks_own(tmp_path: Path) -> None:
    caller = {
        "FIATGATE_PUBLIC_URL": "https://pay.example",
        "FIATGATE_MASTER_KEYS": "mine",
        "FIATGATE_INVOICES_DATABASE_URL": "postgresql://me:secret@db.example/mine",
        "FIATGATE_INVOICES_NATS_URL": "nats://me:secret@nats.example:4222",
    }
    plan = plan_for(tmp_path, caller)
    programs = {program.name: program for program in plan.programs}
    assert plan.environment["FIATGATE_PUBLIC_URL"] == "https://pay.example"
    assert programs["identity"].environment["FIATGATE_MASTER_KEYS"] == "mine"
    invoices = programs["invoices"].environment
    assert invoices["FIATGATE_INVOICES_DATABASE_URL"] == "postgresql://me:secret@db.example/mine"
    assert invoices["FIATGATE_INVOICES_NATS_URL"] == "nats://me:secret@nats.example:4222"
    assert not plan.owns_databases


def test_a_process_gets_no_database_and_no_key_of_another(plan: Plan) -> None:
    assert not [name for name in plan.environment if name.endswith("DATABASE_URL") or "MASTER" in name]
    for program in plan.programs:
        urls = [name for name in program.environment if name.endswith("DATABASE_URL")]
        assert urls == (
            [f"FIATGATE_{program.name.upper()}_DATABASE_URL"] if program.group == "services" else []
        )
        assert ("FIATGATE_MASTER_KEYS" in program.environment) == (program.name == "identity")
        assert ("FIATGATE_SMTP_URL" in program.environment) == (program.name == "identity")
        assert ("FIATGATE_FACT_SIGNING_KEY" in program.environment) == (program.name == "invoices")
        keys = [name for name in program.environment if name.endswith("SEAL_KEYS")]
        assert keys == ([f"FIATGATE_{program.name.upper()}_SEAL_KEYS"] if program.group == "services" else [])


def environments(plan: Plan) -> dict[str, Mapping[str, str]]:
    return {program.name: program.environment for program in plan.programs}


def test_consumers_of_facts_know_the_key_that_invoices_signs_with(tmp_path: Path) -> None:
    mine = {"FIATGATE_FACT_SIGNING_KEY": SIGNING_KEY}
    for plan in (plan_for(tmp_path, {}), plan_for(tmp_path, mine)):
        of = environments(plan)
        signer = Signer(of["invoices"]["FIATGATE_FACT_SIGNING_KEY"])
        for consuming in ("withdrawals", "webhooks"):
            assert of[consuming]["FIATGATE_FACT_PUBLIC_KEYS"] == signer.public_key
    assert of["invoices"]["FIATGATE_FACT_SIGNING_KEY"] == SIGNING_KEY


def test_a_signing_key_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="FIATGATE_FACT_SIGNING_KEY"):
        plan_for(tmp_path, {"FIATGATE_FACT_SIGNING_KEY": "mine"})


def test_a_process_that_uses_nats_gets_its_own_user_and_no_other_password(plan: Plan) -> None:
    assert not [name for name in plan.environment if name.endswith("NATS_URL")]
    passwords = plan.home.secrets()["nats"]
    for program in plan.programs:
        settings = {name: value for name, value in program.environment.items() if name.endswith("NATS_URL")}
        assert set(settings) == (
            {f"FIATGATE_{program.name.upper()}_NATS_URL"} if program.name in PROCESSES else set()
        )
        shown = {user for user, password in passwords.items() if password in str(program.environment)}
        assert shown == {program.name} & set(PROCESSES)


def test_a_nats_server_of_the_callers_is_everybodys_and_in_no_environment_that_all_share(
    tmp_path: Path,
) -> None:
    plan = plan_for(tmp_path, {"FIATGATE_NATS_URL": "nats://nats.example:4222"})
    assert set(plan.nats_urls.values()) == {"nats://nats.example:4222"}
    assert "FIATGATE_NATS_URL" not in plan.environment


def test_every_address_is_on_loopback_and_its_own(plan: Plan) -> None:
    addresses = [value for name, value in plan.environment.items() if name.endswith("_ADDRESS")]
    assert len(set(addresses)) == len(addresses) == len(SERVICES)
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_every_process_has_its_own_port_for_metrics_and_each_worker_one(plan: Plan) -> None:
    names = {service: service.upper() for service in SERVICES} | {each.name: each.variables for each in HTTP}
    assert set(plan.metrics) == set(names)
    addresses = [address for each in plan.metrics.values() for address in each]
    assert len(set(addresses)) == len(addresses) == len(SERVICES) + 3
    for process, (first, *_) in plan.metrics.items():
        assert plan.environment[f"FIATGATE_{names[process]}_METRICS_BIND"] == first
    assert plan.as_json(process_id=1, ready=True)["metrics"] == plan.metrics


def test_the_console_has_host_names_and_the_ports_after_the_gateways(plan: Plan) -> None:
    assert plan.consoles == {
        "console-desk": "http://localhost:18081",
        "console-dashboard": "http://localhost:18082",
    }
    assert plan.environment["FIATGATE_DESK_BIND"] == "127.0.0.1:18081"
    assert plan.as_json(process_id=1, ready=True)["consoles"] == plan.consoles
    for variable, settings in (("DESK", DeskSettings), ("DASHBOARD", DashboardSettings)):
        known = {each for field in settings.model_fields for each in variables_of(settings, field)}
        assert {name for name in plan.environment if name.startswith(f"FIATGATE_{variable}_")} <= known


def test_the_console_takes_other_ports_where_the_next_ones_are_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        first, second = next_free([taken, 70_000])
        assert taken not in (first, second)
        assert first != second
    assert next_free([free := free_ports(1)[0]]) == [free]
    assert next_free([free], apart_from=[free]) != [free]


def test_the_callers_addresses_of_the_console_win(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, {"FIATGATE_DESK_URL": "https://desk.example"})
    assert plan.consoles["console-desk"] == "https://desk.example"


def test_no_port_is_given_twice(plan: Plan) -> None:
    """Nothing listens yet, so nobody would notice before two processes start."""
    inner = [value for name, value in plan.environment.items() if name.endswith("_ADDRESS")]
    inner += [address for each in plan.metrics.values() for address in each]
    inner += [plan.environment[f"FIATGATE_{each}_BIND"] for each in ("DESK", "DASHBOARD")]
    ports = [int(address.rpartition(":")[2]) for address in inner] + [
        plan.port,
        plan.postgres.port,
        plan.nats.port,
    ]
    assert len(set(ports)) == len(ports)


def test_no_port_that_the_caller_named_is_given(tmp_path: Path) -> None:
    """The caller's server may not listen yet. Of 300 ports 150 are named: a choice that ignores one is nearly sure."""
    first, last = ports_of_process()
    named = {"FIATGATE_WEBHOOKS_BIND": "127.0.0.1:18081"}
    named |= {f"FIATGATE_NAMED_{port}_URL": f"http://127.0.0.1:{port}/" for port in range(first, first + 150)}
    assert ports.named_in(named) == {18081, *range(first, first + 150)}
    try:
        ports.choose_from(range(first, first + 300))
        plan = plan_for(tmp_path, named)
    finally:
        ports.choose_from(range(first, last + 1))
    chosen = {plan.postgres.port, plan.nats.port}
    chosen |= ports.named_in({name: value for name, value in plan.environment.items() if name not in named})
    assert not chosen & ports.named_in(named)


def test_a_range_and_ports_beside_it_keep_apart() -> None:
    row = free_range(3)
    assert not set(row) & set(free_range(3, apart_from=row))
    assert not set(row) & set(free_ports(50, apart_from=row))


def test_ports_are_chosen_from_a_range_alone() -> None:
    first, last = ports_of_process()
    try:
        ports.choose_from(range(first, first + 300))
        assert {*free_ports(100), *free_range(3)} <= set(range(first, first + 300))
    finally:
        ports.choose_from(range(first, last + 1))


def test_more_workers_of_the_gateway_have_more_ports_in_a_row(tmp_path: Path) -> None:
    ports = [
        int(address.rpartition(":")[2])
        for address in plan_for(tmp_path, {"FIATGATE_GATEWAY_WORKERS": "4"}).metrics["gateway"]
    ]
    assert ports == list(range(ports[0], ports[0] + 4))


def test_a_prometheus_that_is_asked_for_scrapes_every_process_and_has_the_rules(tmp_path: Path) -> None:
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    plan = plan_for(tmp_path / "home", {"PATH": str(tmp_path), "FIATGATE_PROMETHEUS": "prometheus"})
    assert plan.prometheus is not None
    (supervised,) = [each for each in plan.programs if each.name == "prometheus"]
    plan.prometheus.write_config()

    (written,) = [word.partition("=")[2] for word in supervised.command if word.startswith("--config.file=")]
    config = yaml.safe_load(Path(written).read_text())
    (job,) = config["scrape_configs"]
    assert sorted(job["static_configs"][0]["targets"]) == sorted(
        address for addresses in plan.metrics.values() for address in addresses
    )
    (rules,) = config["rule_files"]
    assert yaml.safe_load(Path(rules).read_text())["groups"]
    assert f"--web.listen-address={plan.prometheus.url.removeprefix('http://')}" in supervised.command
    assert str(program) in supervised.command


def test_no_prometheus_unless_it_is_asked_for_and_a_missing_one_is_told(plan: Plan, tmp_path: Path) -> None:
    assert plan.prometheus is None
    with pytest.raises(CannotStart, match="FIATGATE_PROMETHEUS=prometheus-of-nobody"):
        plan_for(tmp_path / "other", {"PATH": "/bin", "FIATGATE_PROMETHEUS": "prometheus-of-nobody"})


def test_nothing_secret_is_on_a_command_line(plan: Plan) -> None:
    secrets = plan.home.secrets()
    words = " ".join(word for program in plan.programs for word in program.command)
    passwords = (*secrets["databases"].values(), *secrets["nats"].values())
    for secret in (secrets["postgres"], secrets["master_key"], *passwords):
        assert secret not in words
