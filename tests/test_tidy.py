"""House rules that no linter checks. Each message says what the rule prevents."""

import ast
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
RUNNING: Final = (
    "kit",
    "services",
    "gateway",
    "console",
    "cli",
    "deploy",
    "demo",
)  # what runs in production or beside it
MONEY: Final = ("services", "gateway", "console", "cli", "kit/base/money.py", "kit/base/proto.py")

FUNCTION_LINES: Final = 60
FILE_LINES: Final = 400
TEST_FILE_LINES: Final = 700
LONGER: Final[Mapping[str, str]] = {}
"""Files and functions ("path" or "path::name") that may be longer, each with its reason."""

COMMITS: Final[Mapping[str, str]] = {
    "kit/db/database.py": "the one place",
    "kit/db/migrate.py": "ends the transaction of its own session's settings, before Alembic begins its own",
}

STRUCTLOG: Final[Mapping[str, str]] = {
    "kit/observe/log.py": "the one place",
    "kit/base/tls.py": "`base` imports no other room, and it reports a certificate that can't be read",
    "cli/connection.py": "switches logs off: the output of a command is for people",
}

MEASURED: Final[Mapping[str, str]] = {
    "tests/e2e/test_waits.py::test_the_first_two_retries_come_30_and_60_seconds_later_and_not_before": "at least",
    "tests/webhooks/test_delivery.py::test_delays_are_kept_on_the_real_clock": "at least",
}
"""Tests ("path::name") that may assert something about a measured time. `at least`: a slow machine only adds to it."""

Rule = Callable[[Path, ast.Module], Iterator[tuple[int, str]]]


@cache
def sources(*folders: str) -> list[Path]:
    found = [
        path
        for name in folders
        for path in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))
    ]
    return sorted(path for path in found if path.is_file())


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or an attribute; of anything before the first name, a dot."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def calls(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            yield node.lineno, dotted(node.func)


# -- the rules


TIMES: Final = re.compile(r"second|wait", re.IGNORECASE).search


def floats(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    """Seconds may be fractions: code that speaks of them, within two lines, is believed."""
    lines = path.read_text().splitlines()

    def of_time(line: int) -> bool:
        return bool(TIMES("\n".join(lines[max(0, line - 3) : line + 2])))

    called = {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id == "float" and id(node) in called:
            yield node.lineno, "float(…)"
        elif isinstance(node, ast.Constant) and isinstance(node.value, float) and not of_time(node.lineno):
            yield node.lineno, f"{node.value}"
        elif isinstance(node, ast.Name) and node.id == "float" and not of_time(node.lineno):
            yield node.lineno, "a value typed float"


def prints(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    yield from ((line, "print(…)") for line, called in calls(module) if called == "print")


def loggers(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    if name_of(path) not in STRUCTLOG:
        for node in ast.walk(module):
            if isinstance(node, ast.Import) and any(each.name == "structlog" for each in node.names):
                yield node.lineno, "import structlog"
            elif isinstance(node, ast.ImportFrom) and node.module == "structlog":
                yield node.lineno, "from structlog import …"


CLOCKS: Final = re.compile(
    r"(datetime\.)?(datetime|date)\.(now|utcnow|today)"
    r"|time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|perf_counter_ns|localtime|gmtime)"
).fullmatch


# tools/environment.py runs before there is an environment: it can't import kit.
OWN_CLOCK: Final = frozenset({"kit/base/clock.py", "tools/environment.py"})


def clocks(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    if name_of(path) not in OWN_CLOCK:
        yield from ((line, f"{called}()") for line, called in calls(module) if CLOCKS(called))
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                yield node.lineno, "from time import …"


def sleeps(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    yield from ((line, "time.sleep(…)") for line, called in calls(module) if called == "time.sleep")


def commits(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    if name_of(path) not in COMMITS:
        yield from ((line, f"{called}()") for line, called in calls(module) if called.endswith(".commit"))


def long_functions(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    """Counted without signature and docstring. Migrations are lists of tables: length is no burden there."""
    if "migrations" in path.parts:
        return
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > FUNCTION_LINES and f"{name_of(path)}::{node.name}" not in LONGER:
                yield node.lineno, f"{node.name} has {lines} lines, more than {FUNCTION_LINES}"


def long_files(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    lines = len(path.read_text().splitlines())
    most = TEST_FILE_LINES if name_of(path).startswith("tests/") else FILE_LINES
    if lines > most and name_of(path) not in LONGER:
        yield 1, f"{lines} lines, more than {most}"


def nameless(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    if module.body and not ast.get_docstring(module):
        yield 1, "no docstring"


SILENCED: Final = re.compile(r"#\s*(type:\s*ignore|noqa)(?!\[|:\s*[A-Z]+[0-9]+)")


def silenced(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT and SILENCED.search(token.string):
                yield token.start[0], token.string


MEASURES: Final = re.compile(
    r"(.+\.)?(monotonic_seconds|monotonic|monotonic_ns|perf_counter|perf_counter_ns|process_time|elapsed|at_seconds)"
).fullmatch


def _measured(node: ast.AST, names: frozenset[str]) -> bool:
    """Returns whether a value comes from a clock: it is read there, or in a name that holds such a value."""
    return any(
        (isinstance(each, ast.Call) and MEASURES(dotted(each.func)))
        or (isinstance(each, ast.Attribute) and MEASURES(each.attr))
        or (isinstance(each, ast.Name) and each.id in names)
        for each in ast.walk(node)
    )


def timed_assertions(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    """An assertion may name no value that comes from a clock, nor a name or a loop's variable that was made of one."""
    for test in ast.walk(module):
        if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if f"{name_of(path)}::{test.name}" in MEASURED:
            continue
        names: frozenset[str] = frozenset()
        for node in ast.walk(test):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
                value = node.iter if isinstance(node, ast.For) else node.value
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if value is not None and _measured(value, names):
                    names |= {
                        each.id for at in targets for each in ast.walk(at) if isinstance(each, ast.Name)
                    }
        for node in ast.walk(test):
            if isinstance(node, ast.Assert) and _measured(node.test, names):
                yield node.lineno, ast.unparse(node.test)


MADE_ANEW: Final = re.compile(r"(.+\.)?(new_id|uuid\d|urandom|token_\w+|randbytes|random|now)").fullmatch


def changing_parameters(path: Path, module: ast.Module) -> Iterator[tuple[int, str]]:
    """The names of tests are made of their parameters, unless `ids` names them. A lambda is called in the test."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not dotted(node.func).endswith("parametrize"):
            continue
        if any(each.arg == "ids" for each in node.keywords):
            continue
        later = {id(each) for at in ast.walk(node) if isinstance(at, ast.Lambda) for each in ast.walk(at)}
        made = (each for each in ast.walk(node) if isinstance(each, ast.Call) and id(each) not in later)
        yield from ((each.lineno, dotted(each.func)) for each in made if MADE_ANEW(dotted(each.func)))


RULES: Final[Mapping[str, tuple[Rule, tuple[str, ...]]]] = {
    "no float near money: the ledger would have 0.30000000000000004 for 0.1 + 0.2": (floats, MONEY),
    "no print: such a line has no level, service and request id, so an operator cannot find it by request id": (
        prints,
        RUNNING,
    ),
    "loggers come from kit.observe.log.get_logger: one that is made otherwise has another type and another name": (
        loggers,
        RUNNING,
    ),
    "the time comes from kit.base.clock: a test cannot set another clock, so expiry would be untested": (
        clocks,
        (*RUNNING, "tests", "benchmarks", "tools"),
    ),
    "no sleep: a worker that sleeps does not notice the stop, and is killed in the middle of a delivery": (
        sleeps,
        ("kit", "services", "gateway", "console", "deploy", "tests"),
    ),
    "commits only in kit/db/database.py: a commit in the middle of an operation moves money without its event": (
        commits,
        RUNNING,
    ),
    f"short functions: a function longer than {FUNCTION_LINES} lines is not read to its end, and its bug is missed": (
        long_functions,
        (*RUNNING, "benchmarks", "tools"),
    ),
    f"short files: a file longer than {FILE_LINES} lines becomes a folder of the same name (docs/ARCHITECTURE.md)": (
        long_files,
        (*RUNNING, "benchmarks", "tools", "tests"),
    ),
    "a module has a docstring that names its purpose, so that no second one is written for the same purpose": (
        nameless,
        (*RUNNING, "benchmarks", "tools", "tests"),
    ),
    "a rule is switched off by its code: an ignore without a code hides other faults on that line too": (
        silenced,
        (*RUNNING, "benchmarks", "tools", "tests"),
    ),
    "no measured time in an assertion: a busy machine fails it; observe an event, a count or the other side instead": (
        timed_assertions,
        ("tests",),
    ),
    "a test's parameters are the same in every process: otherwise those of `make test` collect different tests": (
        changing_parameters,
        ("tests",),
    ),
}


@pytest.mark.parametrize("why", RULES)
def test_the_house_rule_holds(why: str) -> None:
    rule, folders = RULES[why]
    broken = [
        f"{name_of(path)}:{line}: {what}"
        for path in sources(*folders)
        for line, what in rule(path, tree(path))
    ]
    assert not broken, f"{why}\n" + "\n".join(broken)


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (floats, "price = 0.1"),
        (floats, "price = float(text)"),
        (floats, "def total(amount: float) -> None: ..."),
        (prints, "print('here')"),
        (loggers, "import structlog"),
        (loggers, "from structlog import get_logger"),
        (clocks, "now = datetime.now(UTC)"),
        (clocks, "now = datetime.datetime.utcnow()"),
        (clocks, "started = time.monotonic()"),
        (clocks, "from time import monotonic"),
        (sleeps, "time.sleep(1)"),
        (commits, "session.commit()"),
        (commits, "self._session.commit()"),
        (long_functions, "def f():\n" + "    pass\n" * (FUNCTION_LINES + 1)),
        (long_files, "x = 1\n" * (FILE_LINES + 1)),
        (nameless, "x = 1"),
        (silenced, "x = 1  # type: ignore"),
        (silenced, "import os  # noqa"),
        (changing_parameters, "@pytest.mark.parametrize('id', ['x', f'/{new_id()}'])\ndef test(id): ..."),
        (
            timed_assertions,
            "def test():\n began = monotonic_seconds()\n assert monotonic_seconds() - began < 1",
        ),
        (timed_assertions, "def test():\n a = monotonic_seconds()\n b = [a]\n assert max(b) < 1.5 * min(b)"),
        (timed_assertions, "def test():\n assert get().elapsed.total_seconds() < 3"),
    ],
)
def test_a_breach_is_noticed(
    rule: Rule, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "breach.py"
    path.write_text(source)
    assert list(rule(path, ast.parse(source)))


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (floats, "TIMEOUT_SECONDS = 0.5"),
        (floats, "def wait(seconds: float) -> None: ..."),
        (loggers, "from structlog.typing import FilteringBoundLogger"),
        (clocks, "now = deps.clock.now()"),
        (silenced, "x = 1  # type: ignore[misc]"),
        (silenced, "x = 1  # noqa: S608  made of constants"),
        (
            changing_parameters,
            "@pytest.mark.parametrize('key', [os.urandom(9)], ids=['long'])\ndef test(key): ...",
        ),
    ],
)
def test_what_is_allowed_is_left_alone(
    rule: Rule, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "fine.py"
    path.write_text(source)
    assert not list(rule(path, ast.parse(source)))


def test_every_exception_is_still_needed() -> None:
    unused = [
        name
        for name in {**LONGER, **COMMITS, **STRUCTLOG, **MEASURED}
        if not (ROOT / name.partition("::")[0]).exists()
    ]
    assert not unused, f"exceptions for what is not there any more: {unused}"
