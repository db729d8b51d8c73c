"""The documents say what the code does: generated parts, links, log lines, and the README's tour, which is run."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Final

import pytest

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from gateway.json.problems import PROBLEMS
from tests.support.stack import Stack
from tests.test_architecture import ROOMS
from tools import docs

ROOT: Final = Path(__file__).resolve().parents[1]
README: Final = (ROOT / "README.md").read_text()
DOCUMENTS: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RUNNING: Final = ("kit", "services", "gateway", "console", "cli", "deploy")


def code(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# -- what is generated


@pytest.mark.parametrize("document", sorted({document for document, _ in docs.PARTS}))
def test_the_generated_parts_are_what_the_code_gives(document: str) -> None:
    text = (ROOT / document).read_text()
    assert docs.rewritten(document, text) == text, "run `make docs`"


def test_every_variable_in_the_code_is_in_the_settings() -> None:
    settings = (ROOT / "docs" / "settings.md").read_text()
    read = {
        (variable, relative(path))
        for folder in (*RUNNING, "tools")
        for path in code(folder)
        for variable in re.findall(r"FIATGATE_[A-Z][A-Z_]+[A-Z]", path.read_text())
    }
    unknown = {each for each in read if each[0] not in settings and not _is_of_a_service(each[0])}
    assert not unknown, "in no row of docs/settings.md"


def _is_of_a_service(variable: str) -> bool:
    """FIATGATE_INVOICES_THREADS stands there as FIATGATE_<SERVICE>_THREADS."""
    return bool(
        re.match(rf"FIATGATE_({'|'.join(each.upper() for each in docs.settings_classes())})_", variable)
    )


# -- what a merge leaves behind


def test_no_document_has_marks_of_a_conflict() -> None:
    marked = [
        f"{relative(path)}:{number}"
        for path in [*DOCUMENTS, ROOT / "benchmarks" / "README.md"]
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.match(r"<{7} |>{7} |={7}$", line)
    ]
    assert not marked, "keep what both sides say, and remove the marks"


# -- what is listed


LEVELS: Final = {"debug", "info", "warning", "error", "exception", "critical"}


@cache
def written_events() -> set[tuple[str, str]]:
    """Each event of a log line, and the module that writes it."""
    return {
        (event, relative(path)) for folder in RUNNING for path in code(folder) for event in events_of(path)
    }


def events_of(path: Path) -> Iterator[str]:
    """The first argument of each logging call: the name of what happened."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args and _is_log(node.func):
            for each in ast.walk(node.args[0]):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value


def _is_log(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "write"  # a level chosen beforehand
    return (
        isinstance(function, ast.Attribute)
        and function.attr in LEVELS
        and "log" in ast.unparse(function.value)
    )


def names_in_the_table_of_log_lines() -> set[str]:
    text = (ROOT / "docs" / "operations" / "reference.md").read_text()
    (table,) = re.findall(r"<!-- log lines -->\n(.*?)\n<!-- end of log lines -->", text, re.DOTALL)
    events = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return {name for cell in events for name in re.findall("`([^`]+)`", cell)}


def test_every_log_line_is_explained() -> None:
    lines = written_events()
    assert len(lines) > 30, "the search finds nothing any more"
    explained = names_in_the_table_of_log_lines()
    assert not {each for each in lines if each[0] not in explained}, (
        "not in the table of docs/operations/reference.md#logs"
    )


def test_every_explained_log_line_is_written_by_something() -> None:
    assert names_in_the_table_of_log_lines() <= {event for event, _ in written_events()}


PAST: Final = re.compile(r"[a-z]+(?:_[a-z]+)*_(?:\w+ed|found|hung|lost|set|sent|taken|uncaught|unproven)")
"""A noun and what happened to it: `event_parked`, `traces_not_sent`."""


def test_every_event_of_the_log_is_a_noun_and_a_participle() -> None:
    """Operators filter by these names, and guess a name only if all are made alike."""
    assert not {event for event, _ in written_events() if not PAST.fullmatch(event)}


@pytest.mark.parametrize(
    "event", ["worker died", "rpc", "started", "worker_waits", "Worker_died", "bus_error"]
)
def test_an_event_of_another_style_is_noticed(event: str) -> None:
    assert not PAST.fullmatch(event)


def test_every_gauge_is_explained() -> None:
    text = (ROOT / "docs" / "operations" / "reference.md").read_text()
    gauges = {
        name for path in code("services") for name in re.findall(r"Gauge\(\s*\"(\w+)\"", path.read_text())
    }
    assert len(gauges) > 8
    assert not {gauge for gauge in gauges if f"`{gauge}`" not in text}


def test_every_room_is_in_the_readme() -> None:
    rooms = set(re.findall(r"^\| `(\w+)/", README, re.MULTILINE))
    assert rooms == {room for room in ROOMS if (ROOT / room).exists()}


@pytest.mark.parametrize("document", ["spec-notes.md", "api.md"])
def test_only_codes_that_exist_are_named(document: str) -> None:
    text = (ROOT / "docs" / document).read_text()
    codes = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text))
    settings = (ROOT / "docs" / "settings.md").read_text()
    assert not {each for each in codes if each not in PROBLEMS and f"{each}`" not in settings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), f"{relative(document)} links to {target}"


SECTIONS: Final = re.compile(r"(?:<a id=\"[^\"]+\"></a>\n\n)?^## .*$", re.MULTILINE)


def test_the_contents_of_a_document_have_every_section() -> None:
    checked = set()
    for document in DOCUMENTS:
        text = document.read_text()
        listed = set(re.findall(r"\(#([^)]+)\)", text.split("\n## ")[0]))
        if len(listed) > 3:  # the other documents have no contents
            checked.add(document.name)
            missing = {each for each in SECTIONS.findall(text) if not anchors_of(each) & listed}
            assert not missing, relative(document)
    assert {"reference.md", "api.md"} <= checked


def anchors_of(text: str) -> set[str]:
    """Those written out, and those that GitHub makes of headings, as far as ours go."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {
        *re.findall('<a id="([^"]+)"', text),
        *(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings),
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_links_to_a_part_of_a_document_lead_to_it(document: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", document.read_text()):
        there = document.parent / target if target else document
        if not target.startswith("http") and there.suffix == ".md":
            assert anchor in anchors_of(there.read_text()), f"{relative(document)} links to {target}#{anchor}"


PLACES: Final = re.compile(
    r"`((?:kit|services|gateway|cli|deploy|protos|tools|tests|benchmarks|docs)/[\w./*-]*[\w*])(?:::\w+)?`"
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_files_that_are_named_exist(document: Path) -> None:
    named = set(PLACES.findall(document.read_text()))
    assert not {each for each in named if not list(ROOT.glob(each)) and not list(ROOT.glob(f"{each}.py"))}


# -- what code, protos and documents refer to

DOTTED: Final = re.compile(
    r"(?<![\w/.\"'-])(?:kit|services|gateway|cli|deploy|tools|tests|benchmarks)(?:\.[A-Za-z_]\w*)+"
)


def is_there(dotted: str) -> bool:
    """Returns whether it is a module, a package, or one of these and a name that stands in it."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        place, names = ROOT.joinpath(*parts[:end]), parts[end:]
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return all(re.search(rf"\b{name}\b", file.read_text()) for name in names)
        if place.is_dir():
            return not names
    return False


def test_modules_and_names_that_are_named_exist() -> None:
    """Those in documents, docstrings and comments: an import that moves changes the code only."""
    python = [path for room in ROOMS for path in code(room)]
    named = {
        (relative(path), each)
        for path in [*DOCUMENTS, *python]
        for text in texts_of(path)
        for each in DOTTED.findall(text)
    }
    assert len(named) > 50, "the search finds nothing any more"
    missing = {dotted for dotted in {each[1] for each in named} if not is_there(dotted)}
    assert not {each for each in named if each[1] in missing}


@pytest.mark.parametrize(
    ("dotted", "exists"),
    [
        ("kit.db.migrations.steps.index_beside_traffic", True),
        ("kit.rpc.errors.Refused", True),
        ("kit.db.migrations.index_beside_traffic", False),
        ("kit.nowhere", False),
    ],
)
def test_a_name_that_is_not_there_is_noticed(dotted: str, exists: bool) -> None:
    assert is_there(dotted) == exists


KINDS: Final = {
    ".py",
    ".pyi",
    ".proto",
    ".md",
    ".toml",
    ".yaml",
    ".env",
    ".html",
    ".js",
    ".css",
    ".sql",
    ".conf",
    "",
}
OUTSIDE: Final = re.compile(r"\b(?:SP[E]C|DESIG[N])\b")
CAPITALS: Final = re.compile(r"(?<![\w/.])([A-Z]{4,})\.md\b")
PARTS: Final = re.compile(r"(?<![\w/.])docs/([\w/-]+\.md)(?:#([\w-]+))?")
DECISIONS: Final = re.compile(r"\bdocs/decisions/(\d{4})\b")


@cache
def texts() -> dict[str, str]:
    """Returns every text that people wrote or that is made of it, by its path."""
    folders = [each for each in (*ROOMS, "docs", "tests", "benchmarks", "tools") if (ROOT / each).exists()]
    found = [
        *ROOT.iterdir(),
        *(path for folder in dict.fromkeys(folders) for path in (ROOT / folder).rglob("*")),
    ]
    return {
        relative(path): path.read_text() for path in sorted(found) if path.is_file() and path.suffix in KINDS
    }


def test_no_file_refers_to_a_document_outside_the_repository() -> None:
    """A reader can't open it, so the sentence explains nothing."""
    named = {(path, word) for path, text in texts().items() for word in OUTSIDE.findall(text)}
    ours = {path.rpartition("/")[2] for path in texts()}
    capital = {(path, f"{word}.md") for path, text in texts().items() for word in CAPITALS.findall(text)}
    named |= {each for each in capital if each[1] not in ours}
    assert not named


def test_every_part_of_a_document_that_is_referred_to_exists() -> None:
    """An anchor in a comment breaks without a sign when its heading changes."""
    named = {(path, *part) for path, text in texts().items() for part in PARTS.findall(text)}
    assert len({each for each in named if each[2]}) > 50, "the search finds nothing any more"
    missing = {each for each in named if not (ROOT / "docs" / each[1]).is_file()}
    numbers = {(path, number, "") for path, text in texts().items() for number in DECISIONS.findall(text)}
    missing |= {each for each in numbers if not list((ROOT / "docs" / "decisions").glob(f"{each[1]}-*.md"))}
    parts = {(file, anchor) for _, file, anchor in named - missing if anchor}
    known = {file: anchors_of((ROOT / "docs" / file).read_text()) for file, _ in parts}
    missing |= {each for each in named - missing if each[2] and each[2] not in known[each[1]]}
    assert not missing


PICTURES_MOST_BYTES: Final = 60_000


def test_every_picture_is_made_by_the_tool_shown_to_a_reader_and_small() -> None:
    there = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}
    made = set(re.findall(r'develop\(\s*"([\w.-]+)"', (ROOT / "tools" / "pictures.py").read_text()))
    shown = {name for path in DOCUMENTS for name in re.findall(r"images/([\w.-]+)", path.read_text())}
    assert there.keys() == made == shown, "python tools/pictures.py"
    assert max(there.values()) <= PICTURES_MOST_BYTES


# -- how documents and code explain


UNNAMED: Final = re.compile(
    r"(?:^|[.:;!?] |\| ?|[-*] )(Who|Whoever|Whose|What|Whatever|Nobody|No one|Somebody|Someone|Everybody)\b(?![^.]*\?)"
)
"""A sentence, a cell or an item of a list with such a subject. Questions may have one."""


@cache
def texts_of(path: Path) -> list[str]:
    """Returns the paragraphs of a document, or the docstrings and comments of a module, each in one line."""
    text = path.read_text()
    if path.suffix == ".md":
        found = re.split(r"\n\s*\n", text)
    else:
        found = [
            node.value.value
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ]
        found += [
            re.sub(r"^ *# ?", "", block, flags=re.M) for block in re.findall(r"(?:^ *#.*\n)+", text, re.M)
        ]
    return [" ".join(each.split()) for each in found]


def unnamed_subjects(text: str) -> list[str]:
    return [text[found.start() :][:90] for found in UNNAMED.finditer(text)]


def test_every_sentence_names_its_subject() -> None:
    places = [*DOCUMENTS, *(path for folder in (*RUNNING, "tools") for path in code(folder))]
    found = [
        f"{relative(path)}: {each}"
        for path in places
        for text in texts_of(path)
        for each in unnamed_subjects(text)
    ]
    assert not found, "name the worker, the customer, the merchant's server:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("Whoever is asked speaks for all.", False),
        ("It is kept. What was there before stays.", False),
        ("| lock | Nobody else has it |", False),
        ("What is away? Run `fiatgate status`.", True),
        ("A process serves when it can answer, whoever calls it.", True),
    ],
)
def test_a_sentence_without_a_named_subject_is_noticed(text: str, is_plain: bool) -> None:
    assert (not unnamed_subjects(text)) == is_plain


# -- what is run


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def tour() -> str:
    """The README's shell blocks as one script: they find the stack by FIATGATE_HOME, in place of a fresh `make run`."""
    port = free_ports(1)[0]
    script = "\n".join(block for block in blocks("sh") if not block.startswith("make "))
    assert script.count("fiatgate ") > 8
    here = {
        '"$PWD/.venv/bin:$PATH"': f'"{Path(sys.executable).parent}:$PATH"',
        "fiatgate listen &": f"fiatgate listen --port {port} > $STACK/received.txt 2> $STACK/receiver.log &"
        " echo $! > $STACK/receiver.pid",
        "127.0.0.1:9000": f"127.0.0.1:{port}",
    }
    for there, replacement in here.items():
        assert there in script
        script = script.replace(there, replacement)
    return f"set -eu\n{script}\necho $ORDER"


def test_the_tour_of_the_readme_works_on_any_port(stack: Stack, tmp_path: Path) -> None:
    environment = {"FIATGATE_HOME": str(stack.home.folder), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    received = stack.home.folder / "received.txt"
    try:
        result = subprocess.run(
            ["sh", "-c", tour()], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
        order = result.stdout.splitlines()[-1]
        told = f"success {order} 100.50 EUR\n"
        wait_until(partial(_is, received, told), "the webhook", timeout_seconds=30)
    finally:
        subprocess.run(["sh", "-c", "kill $(cat receiver.pid)"], cwd=stack.home.folder, check=False)
    assert "Every cent is accounted for" in result.stdout
    invoice = stack.request("GET", f"/api/v1/invoices/{order}").json()["data"]
    assert (invoice["status"], invoice["deal"]["status"]) == ("success", "completed")


def _is(file: Path, text: str) -> bool:
    return file.read_text() == text
