"""What a stack consists of: the caller's settings win, and no process gets more than it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.local.home import Home
from deploy.local.plan import Plan, make_plan


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


def test_the_callers_settings_win_over_the_stacks_own(tmp_path: Path) -> None:
    caller = {
        "FIATGATE_PUBLIC_URL": "https://pay.example",
        "FIATGATE_MASTER_KEYS": "mine",
        "FIATGATE_INVOICES_DATABASE_URL": "postgresql://me:secret@db.example/mine",
    }
    plan = plan_for(tmp_path, caller)
    programs = {program.name: program for program in plan.programs}
    assert plan.environment["FIATGATE_PUBLIC_URL"] == "https://pay.example"
    assert programs["merchants"].environment["FIATGATE_MASTER_KEYS"] == "mine"
    assert programs["invoices"].environment == {
        "FIATGATE_INVOICES_DATABASE_URL": "postgresql://me:secret@db.example/mine"
    }
    assert not plan.owns_databases


def test_a_process_gets_no_database_and_no_key_of_another(plan: Plan) -> None:
    assert not [name for name in plan.environment if name.endswith("DATABASE_URL") or "MASTER" in name]
    for program in plan.programs:
        urls = [name for name in program.environment if name.endswith("DATABASE_URL")]
        assert urls == (
            [f"FIATGATE_{program.name.upper()}_DATABASE_URL"] if program.group == "services" else []
        )
        assert ("FIATGATE_MASTER_KEYS" in program.environment) == (program.name == "merchants")


def test_every_address_is_on_loopback_and_its_own(plan: Plan) -> None:
    addresses = [value for name, value in plan.environment.items() if name.endswith("_ADDRESS")]
    assert len(set(addresses)) == len(addresses) == 5
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_nothing_secret_is_on_a_command_line(plan: Plan) -> None:
    secrets = plan.home.secrets()
    words = " ".join(word for program in plan.programs for word in program.command)
    for secret in (secrets["postgres"], secrets["master_key"], *secrets["databases"].values()):
        assert secret not in words
