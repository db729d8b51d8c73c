"""Payment references and kinds of accounts at the command line, against the whole stack."""

from collections import Counter
from importlib import metadata
from typing import Any

import pytest

from demo.world import METHODS
from kit.base.codes import in_groups, parse_code
from kit.base.ids import new_id
from tests.cli.command_line import Fiatgate, run

ACCOUNTS = ("DE02120300000000202051", "DE89370400440532013000")
PRICE = "49.90"


@pytest.fixture
def sepa(fiatgate: Fiatgate) -> str:
    """A method of SEPA accounts whose transfers carry references, without an account."""
    code = f"sepa-{new_id().hex[:12]}"
    method = set_method(fiatgate, code, "--takes-reference", "--account-kind", "iban")
    assert (method["takes_reference"], method["account_kind"]) == (True, "iban")
    return code


def set_method(fiatgate: Fiatgate, code: str, *options: str) -> dict[str, Any]:
    method: dict[str, Any] = fiatgate(
        *("methods", "set", code, "--currency", "EUR", "--name", "SEPA", "--min", "1", "--max", "900"),
        *("--minutes", "30", *options),
    )
    return method


def add(code: str, account: str) -> tuple[str, ...]:
    return ("requisites", "add", code, "--holder", "A. Holder", "--account", account)


def test_an_account_that_is_none_is_refused_and_another_is_stored_in_one_form(
    fiatgate: Fiatgate, sepa: str
) -> None:
    for account in ("hello", "DE02 1203 0000 0000 2020 15"):
        assert fiatgate.refused(*add(sepa, account)) == "VALIDATION_ERROR"
        assert "this is no IBAN" in run(*add(sepa, account)).err
    added = fiatgate(*add(sepa, "de02 1203 0000 0000 2020 51"))
    assert added["account"] == ACCOUNTS[0]
    assert run("methods", "set", sepa, "--account-kind", "bank").exit_code == 2


def test_options_that_are_not_given_stay(fiatgate: Fiatgate, sepa: str) -> None:
    assert set_method(fiatgate, sepa)["takes_reference"] is True
    assert set_method(fiatgate, sepa, "--no-takes-reference")["takes_reference"] is False
    assert set_method(fiatgate, sepa)["account_kind"] == "iban"
    (listed,) = [each for each in fiatgate("methods", "list") if each["method_code"] == sepa]
    assert (listed["takes_reference"], listed["account_kind"]) == (False, "iban")


def test_four_customers_at_one_price_are_told_apart_in_the_list(fiatgate: Fiatgate, sepa: str) -> None:
    for account in ACCOUNTS:
        fiatgate(*add(sepa, account))
    merchant = fiatgate(
        *("merchants", "create", "Corner shop", "--owner", f"{new_id().hex}@shop.example", "--active"),
        *("--category", "standard", "--callback-url", "https://shop.example/hook"),
        *("--success-url", "https://shop.example/thanks", "--fail-url", "https://shop.example/sorry"),
    )
    key = fiatgate("keys", "create", merchant["merchant_id"], "--name", "till")["api_key"]
    deals = {}
    for name in ("Zoë Müller", "Max Huber", "Eve Example", ""):
        order = {
            "amount": PRICE,
            "currency_code": "EUR",
            "customer_id": new_id().hex,
            "external_id": new_id().hex,
        }
        answer = fiatgate.stack.request("POST", "/api/v1/create-invoice", api_key=key, json=order)
        assert answer.status_code == 201, answer.text
        invoice = answer.json()["invoice_id"]
        deal = fiatgate("checkout", "select", invoice, sepa)["deal"]
        fiatgate("checkout", "mark-paid", invoice, *(["--sender", name] if name else []))
        deals[name] = deal["deal_id"]
    listed = fiatgate("deals", "list", "--method", sepa)
    assert {each["deal_id"] for each in listed} == set(deals.values())
    assert Counter(each["account"] for each in listed) == dict.fromkeys(ACCOUNTS, 2)
    assert len({each["amount_fiat"] for each in listed}) == 1
    references = {each["deal_id"]: each["reference"] for each in listed}
    assert len({parse_code(each) for each in references.values()}) == 4
    shown = in_groups(references[deals["Zoë Müller"]])
    assert shown in fiatgate.shown("deals", "show", deals["Zoë Müller"])
    assert shown in fiatgate.shown("deals", "list", "--method", sepa)
    for wanted in (("--reference", shown.lower()), ("--sender", "MULLER ZOE")):
        (found,) = fiatgate("deals", "list", "--method", sepa, *wanted)
        assert found["deal_id"] == deals["Zoë Müller"]
    assert deals["Max Huber"] in {each["id"] for each in fiatgate("find", references[deals["Max Huber"]])}


def test_the_accounts_of_the_demo_have_the_form_of_their_kind(fiatgate: Fiatgate) -> None:
    """Seeded through the services, which store each as it stands in the demo world: a second start adds none."""
    listed = Counter(
        (each["method_code"], each["account"])
        for each in fiatgate("requisites", "list")
        if each["method_code"] in {method.code for method in METHODS}
    )
    assert listed == {(method.code, account): 1 for method in METHODS for account in method.accounts}


def test_a_merchant_is_known_by_its_name_and_two_of_one_name_by_their_ids(fiatgate: Fiatgate) -> None:
    name = f"Lamp shop {new_id().hex}"
    create = ("merchants", "create", name, "--owner", "owner@lamps.example")
    made = fiatgate(*create)
    assert fiatgate("balance", name.upper())["merchant_id"] == made["merchant_id"]
    fiatgate(*create)
    assert fiatgate.refused("balance", name) == "ID_AMBIGUOUS"
    assert fiatgate.refused("balance", f"no {name}") == "MERCHANT_NOT_FOUND"


def test_no_merchant_gets_the_place_of_another_by_its_name(fiatgate: Fiatgate) -> None:
    owner = ("--owner", "owner@lamps.example")
    meant = fiatgate("merchants", "create", "Meant", *owner)["merchant_id"]
    fiatgate("merchants", "create", meant.replace("-", "")[:20], *owner)
    fiatgate("merchants", "create", meant, *owner)
    assert fiatgate("balance", meant[:24])["merchant_id"] == meant
    assert fiatgate("balance", meant)["merchant_id"] == meant


def test_the_command_says_its_version() -> None:
    assert run("--version").out.strip() == metadata.version("fiatgate")
