"""Attacks by someone who has a service's database: refused, found by `fiatgate verify`, or not promised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg2
import pytest

from tests.security.attacks import ATTACKS
from tests.security.attacks.attack import Attack, Outcome
from tests.security.attacks.document import DOCUMENT, documented
from tests.security.shop import Shop
from tests.support.receiver import Receiver
from tests.support.stack import Stack


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A stack of its own, because what is written past the services stays."""
    settings = {"FIATGATE_FOUR_EYES_USDT": "400", "FIATGATE_DESK_REQUESTS_PER_MINUTE": "0"}
    stack = Stack(tmp_path_factory.mktemp("attacked") / "home", settings=settings)
    try:
        stack.start()
        with pytest.MonkeyPatch.context() as patched, Receiver() as receiver:
            patched.setenv("FIATGATE_HOME", str(stack.home.folder))
            yield Shop(stack, receiver)
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def errors(shop: Shop) -> dict[Attack, str]:
    """PostgreSQL's error for each attack; empty where it was not refused. Those that are refused come first, before the
    others change their rows.
    """
    in_order = sorted(ATTACKS, key=lambda each: each.outcome is not Outcome.REFUSED)
    return {each: attacked(shop, each) for each in in_order}


@pytest.fixture(scope="module")
def report(shop: Shop, errors: dict[Attack, str]) -> dict[str, Any]:
    """What `fiatgate verify` says after all of them."""
    return shop.verified()


def attacked(shop: Shop, attack: Attack) -> str:
    url = (
        shop.stack.superuser_url(attack.service)
        if attack.by_owner
        else shop.stack.database_urls[attack.service]
    )
    with closing(psycopg2.connect(url)) as database, database.cursor() as cursor:
        if attack.by_owner:
            cursor.execute("SET session_replication_role = replica")
        try:
            cursor.execute(attack.sql, shop.ids)
            database.commit()
        except psycopg2.Error as error:
            return str(error)
        return ""


def test_there_are_sixty_and_more() -> None:
    assert len({(each.service, each.what, each.by_owner) for each in ATTACKS}) == len(ATTACKS) >= 60


def test_the_document_has_these_attacks() -> None:
    text = DOCUMENT.read_text()
    assert documented(text) == text, "run `make docs`"


def test_no_attack_stops_the_verification(report: dict[str, Any]) -> None:
    assert report["exit_code"] == 1
    assert report["not_run"] == []
    for part in ("deals", "rates", "people", "merchants", "withdrawals", "finished invoices", "acts"):
        assert report["checked"][part] > 0, part


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: f"{each.service}: {each.what}")
def test_it_is_refused_found_or_not_promised(
    shop: Shop, errors: dict[Attack, str], report: dict[str, Any], attack: Attack
) -> None:
    if attack.outcome is Outcome.REFUSED:
        assert attack.names[0] in errors[attack]
        return
    assert not errors[attack], f"refused: {errors[attack]}"
    if attack.outcome is Outcome.FOUND:
        names = [each % shop.ids for each in attack.names]
        lines = [f"{each['check']}: {each['text']}" for each in report["problems"]] + report["unreadable"]
        assert any(all(name in line for name in names) for line in lines), "\n".join([*names, "--", *lines])
