"""Keys of connectors: made, listed, revoked; one that SQL made or brought back is named."""

from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from services.bank.operations import connectors
from services.bank.operations.connectors import Heard, NewConnector
from services.bank.wiring import Deps
from tests.bank.test_importing import problems_of
from tests.support.acting import refusal


def made(bank: Deps, *accounts: str, name: str = "till", silence_seconds: int = 0) -> NewConnector:
    return connectors.create_connector(
        bank, name=name, accounts=accounts or ("A1:EUR",), silence_seconds=silence_seconds
    )


def listed(bank: Deps, new: NewConnector) -> Heard:
    found = connectors.list_connectors(bank)
    return next(each for each in found if each.connector.id == new.connector_id)


def test_a_key_is_stored_as_a_hash_and_revoked_for_good(bank: Deps) -> None:
    new = made(bank, "A1:EUR", "A1:EUR", "A2:USD")
    connector = listed(bank, new).connector
    assert new.key.startswith(connector.hint) and connector.key_hash == connectors.hash_of(new.key)
    assert connector.accounts == ["A1:EUR", "A2:USD"]
    assert problems_of(bank, "connectors") == set()
    first = connectors.revoke_connector(bank, connector_id=str(new.connector_id))
    again = connectors.revoke_connector(bank, connector_id=str(new.connector_id))
    assert first.connector.revoked_at == again.connector.revoked_at is not None
    assert problems_of(bank, "connectors") == set()
    with pytest.raises(ProgrammingError, match="it has ended"), bank.db.transaction() as tx:
        tx.execute(text("UPDATE connectors SET revoked_at = NULL WHERE id = :id"), {"id": new.connector_id})


def test_a_form_that_is_sent_again_makes_no_second_key(bank: Deps) -> None:
    first = made(bank)
    make = partial(connectors.create_connector, bank, name="till", accounts=["A1:EUR"], silence_seconds=0)
    second = make(newest_connector_id=str(first.connector_id))
    again = refusal(lambda: make(newest_connector_id=str(first.connector_id)))
    assert (again.reason, again.metadata["now"]) == ("EDIT_CONFLICT", str(second.connector_id))


def test_a_key_that_sql_made_is_named(bank: Deps) -> None:
    new = made(bank)
    copied = (
        "INSERT INTO connectors SELECT gen_random_uuid(), name, hint, sha256('x'), accounts, silence_seconds,"
    )
    with bank.db.transaction() as tx:
        tx.execute(
            text(f"{copied} created_at, heard_at, revoked_at FROM connectors WHERE id = :id"),
            {"id": new.connector_id},
        )
    assert problems_of(bank, "connectors") == {"act"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"accounts": ()}, "accounts"),
        ({"accounts": ("A1:EUR",) * 101}, "accounts"),
        ({"silence_seconds": 59}, "silence_seconds"),
        ({"silence_seconds": -1}, "silence_seconds"),
    ],
)
def test_a_wrong_value_is_refused(bank: Deps, given: dict[str, object], field: str) -> None:
    right: dict[str, object] = {"name": "till", "accounts": ("A1:EUR",), "silence_seconds": 0}
    refused = refusal(connectors.create_connector, bank, **right | given)
    assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("account", "currency"), [("", "EUR"), ("Ж1", "EUR"), ("A" * 65, "EUR"), ("A1", "eur")]
)
def test_an_account_has_letters_and_digits_and_a_currency(account: str, currency: str) -> None:
    assert refusal(connectors.account_of, account, currency).metadata["field"] == "accounts"
    assert connectors.account_of("de89 3704-0044", "EUR") == "DE8937040044:EUR"


def test_only_an_active_connector_with_a_limit_is_silent(bank: Deps) -> None:
    limited, unlimited = made(bank, silence_seconds=60), made(bank)
    connector, now = listed(bank, limited).connector, bank.clock.now()
    assert not connector.is_silent(now + timedelta(seconds=60))
    assert connector.is_silent(now + timedelta(seconds=61))
    assert not listed(bank, unlimited).connector.is_silent(now + timedelta(days=1))
