"""The rooms of kit, of the gateway and of the console (docs/ARCHITECTURE.md), and the order in which they import."""

import re
from typing import Final

import pytest

import kit
from tests.test_architecture import ROOT, imports_of, sources

# In this order: each imports itself and those before it.
KIT_ROOMS: Final = ("base", "observe", "work", "egress", "db", "audit", "events", "rpc", "process", "web")


def test_kit_is_its_rooms() -> None:
    there = {path.parent.name for path in ROOT.glob("kit/*/__init__.py")}
    assert there == set(KIT_ROOMS)
    assert {path.name for path in ROOT.glob("kit/*.py")} == {"__init__.py"}
    assert re.findall(r"^    (\w+)  ", kit.__doc__ or "", re.MULTILINE) == list(KIT_ROOMS)


@pytest.mark.parametrize("room", KIT_ROOMS)
def test_a_room_of_kit_imports_itself_and_those_before_it(room: str) -> None:
    allowed = KIT_ROOMS[: KIT_ROOMS.index(room) + 1]
    wrong = [
        str(each)
        for path in sources(f"kit/{room}")
        for each in imports_of(path)
        if each.module.startswith("kit.") and each.module.split(".")[1] not in allowed
    ]
    assert not wrong, f"kit/{room} may import {', '.join(allowed)}:\n" + "\n".join(wrong)


# In this order, as in docs/ARCHITECTURE.md.
GATEWAY_ROOMS: Final = (
    "config",
    "links",
    "exchange",
    "walls",
    "access",
    "json",
    "wiring",
    "api",
    "feed",
    "openapi",
    "pay",
    "refusals",
    "app",
    "__main__",
)


CONSOLE_ROOMS: Final = (
    "config",
    "words",
    "surfaces",
    "exchange",
    "calls",
    "strangers",
    "options",
    "pictures",
    "ui",
    "wiring",
    "page",
    "agreed_page",
    "withdrawal_page",
    "file_page",
    "list_page",
    "logo_page",
    "signin",
)
TOPICS: Final = sorted(path.parent.name for path in ROOT.glob("console/*/routes.py"))
"""Rooms of the console that stand side by side: `signin` is the only one that others import."""
CONSOLE_END: Final = ("refusals", "app", "__main__")
HTTP_ROOMS: Final = {
    "gateway": GATEWAY_ROOMS,
    "console": (*CONSOLE_ROOMS, *(each for each in TOPICS if each != "signin"), *CONSOLE_END),
}


@pytest.mark.parametrize("process", HTTP_ROOMS)
def test_an_http_process_is_its_rooms(process: str) -> None:
    there = {path.parent.name for path in ROOT.glob(f"{process}/*/__init__.py")}
    there |= {path.stem for path in ROOT.glob(f"{process}/*.py")}
    assert there == {*HTTP_ROOMS[process], "__init__"}


@pytest.mark.parametrize(
    ("process", "room"), [(process, room) for process, rooms in HTTP_ROOMS.items() for room in rooms]
)
def test_a_room_of_an_http_process_imports_itself_and_those_before_it(process: str, room: str) -> None:
    rooms = HTTP_ROOMS[process]
    allowed = rooms[: rooms.index(room) + 1]
    if process == "console" and room in TOPICS and room != "signin":
        allowed = (*CONSOLE_ROOMS, room)
    wrong = [
        str(each)
        for path in [ROOT / f"{process}/{room}.py", *sources(f"{process}/{room}")]
        if path.exists()
        for each in imports_of(path)
        if each.module.startswith(f"{process}.") and each.module.split(".")[1] not in allowed
    ]
    assert not wrong, f"{process}/{room} may import {', '.join(allowed)}:\n" + "\n".join(wrong)


SAMPLE: Final = ("gateway.pay.brand", "gateway.pay.files", "gateway.pay.sample")
"""The parts of the payment page of which the settings make a preview (docs/decisions/0036)."""


def test_the_settings_show_the_payment_page_and_the_console_knows_nothing_else_of_the_gateway() -> None:
    found = {
        (path.relative_to(ROOT).parts[1], each.module)
        for path in sources("console")
        for each in imports_of(path)
        if each.module.startswith("gateway.")
    }
    assert {room for room, _ in found} == {"settings"}
    assert {module for _, module in found if not module.startswith(SAMPLE)} == set()
