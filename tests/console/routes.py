"""The routes of both surfaces, and the fields that the code behind them reads: a new one can't be forgotten."""

import asyncio
import inspect
import re
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any, Final, TypeVar

import falcon.asgi
import falcon.inspect

from console.app import navigation_of, routes
from console.config import ConsoleSettings, DashboardSettings, DeskSettings
from console.list_page import ListPage
from console.page import Page
from console.surfaces import surface_of as surface_with
from console.wiring import wired

T = TypeVar("T")
NOWHERE: Final = "127.0.0.1:1"
ADDRESSES: Final[dict[str, Any]] = {
    name: NOWHERE for name in DeskSettings.model_fields if name.endswith("_address")
}
SETTINGS: Final[dict[str, type[ConsoleSettings]]] = {"desk": DeskSettings, "dashboard": DashboardSettings}
WITHOUT_SESSION: Final = frozenset(
    {"/sign-in", "/sign-in/challenge", "/sign-in/passkey", "/sign-out", "/invitation"}
)
"""The addresses that are open to people who are not signed in."""
NO_ID: Final = "00000000-0000-7000-8000-000000000000"

_QUERY: Final = re.compile(r'get_param\("(\w+)"').findall
_FORM: Final = re.compile(r'\.(?:text|all|line|prose)\("(\w+)"').findall
_FORM_IN_TURN: Final = re.compile(
    r"\.(?:text|line|prose)\((?:name|field|each)\b.*for \w+ in ([A-Z]+)|typed_in\(form,[^)]*?\b([A-Z]+)\b"
).findall


async def _places(settings: ConsoleSettings) -> list[tuple[str, Any, dict[str, str]]]:
    async with wired(settings, navigation_of(surface_with(settings))) as deps:
        app: falcon.asgi.App[Any, Any] = routes(deps)
        found = []
        for route in falcon.inspect.inspect_routes(app):
            resource = (app._router.find(re.sub(r"{\w+}", "x", route.path)) or [None])[0]
            methods = {each.method: each.function_name for each in route.methods if not each.internal}
            found.append((route.path, resource, methods))
        return found


def apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs it in a thread of its own: a browser has an event loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, coroutine).result()


@cache
def places_of(surface: str) -> list[tuple[str, Any, dict[str, str]]]:
    """Address, resource, and the name of the responder by method."""
    demo: dict[str, Any] = {"demo_bank": True} if surface == "desk" else {}
    return apart(_places(SETTINGS[surface](**ADDRESSES, **demo)))


def routes_of(surface: str) -> list[tuple[str, str, Any]]:
    """Method, address and resource."""
    return [(method, path, resource) for path, resource, methods in places_of(surface) for method in methods]


def address_of(path: str, value: str = NO_ID) -> str:
    return re.sub(r"{\w+}", value, path)


def _sources(kind: type) -> Iterator[tuple[ModuleType, str]]:
    """Yields the modules of a page and of its bases but `Page`, with their code but that of other pages."""
    for module in {sys.modules[each.__module__] for each in kind.mro() if issubclass(each, Page)}:
        if module.__name__ == Page.__module__:
            continue
        text = inspect.getsource(module)
        for other in vars(module).values():
            is_page = inspect.isclass(other) and issubclass(other, Page)
            if is_page and other.__module__ == module.__name__ and other not in kind.mro():
                text = text.replace(inspect.getsource(other), "")
        yield module, text


def fields_read(resource: Page, method: str) -> set[str]:
    """The fields of the query (GET) or of the form (POST) that the code of a page reads."""
    names: set[str] = set()
    for module, text in _sources(type(resource)):
        if method == "GET":
            names |= {*_QUERY(text)}
        else:
            names |= {*_FORM(text)}
            names |= {name for found in _FORM_IN_TURN(text) for name in getattr(module, "".join(found))}
    if method == "GET" and isinstance(resource, ListPage):
        names |= {each.name for each in resource.filters} | {"after", "limit"}
    return names
