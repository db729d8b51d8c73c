"""Writes the parts of docs/ that come from the code: settings, commands, and the tables of the API.

python tools/docs.py            write them
python tools/docs.py --check    exit 1 when docs/ differs from the code (tests/test_docs.py does the same)
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import typer.main
from annotated_types import Ge, Gt, Le, Lt

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, python looks beside the script only

from cli.__main__ import app  # noqa: E402  see the line above
from console.config import DashboardSettings, DeskSettings  # noqa: E402
from gateway.config import GatewaySettings  # noqa: E402
from kit.base.config.processes import CallerSettings, CliSettings, Settings  # noqa: E402
from kit.base.config.variables import PREFIX, describe  # noqa: E402
from kit.base.services import SERVICES  # noqa: E402
from tools import api_tables  # noqa: E402
from tools.guide import MADE, guide_html  # noqa: E402

# -- settings

# Variables that no settings class reads: those of the local stack and of make.
LOCAL: Final = (
    (
        "`FIATGATE_HOME`",
        "`.fiatgate`",
        "`make run`, `fiatgate`",
        "folder of one local stack: data, secrets, logs",
    ),
    (
        "`PORT`",
        "`8080`",
        "`make run`",
        "port of the gateway: `make run PORT=8081`; the console takes the next two",
    ),
    (
        "`FIATGATE_PROMETHEUS`",
        "",
        "`make run`",
        "a Prometheus to run beside the stack, by name or path, with our alert rules",
    ),
    (
        "`FIATGATE_SIGNING_SECRET`",
        "the demo merchant's",
        "`fiatgate listen`",
        "the secret that webhooks are signed with",
    ),
    ("`PYTHON`", "newest found (3.11 or newer)", "`make`", "the interpreter that makes `.venv`"),
)


@dataclass(frozen=True)
class Row:
    """One line of the table; several processes may read the same variables."""

    variables: str
    default: str
    meaning: str


def settings_classes() -> dict[str, type[Settings]]:
    """Returns the settings class of every process, by its name."""
    found: dict[str, type[Settings]] = {}
    for service in SERVICES:
        module = importlib.import_module(f"services.{service}.config")
        found[service] = getattr(module, f"{service.capitalize()}Settings")
    return found | {"gateway": GatewaySettings, "desk": DeskSettings, "dashboard": DashboardSettings}


def settings_table() -> str:
    readers: dict[Row, list[str]] = {}
    all_settings: dict[str, type[CallerSettings]] = {**settings_classes(), "cli": CliSettings}
    for process, settings in all_settings.items():
        for row in _rows(process, settings):
            readers.setdefault(row, []).append(process)
    lines = ["| variable | default (allowed) | read by | meaning |", "|---|---|---|---|"]
    for row, processes in sorted(readers.items(), key=lambda item: _place(*item)):
        variables = row.variables
        if len(processes) == 1:
            variables = variables.replace("<SERVICE>", processes[0].upper())
        lines.append(f"| {variables} | {row.default} | {_names(processes)} | {row.meaning} |")
    lines += [f"| {' | '.join(row)} |" for row in LOCAL]
    return "\n".join(lines)


def _place(row: Row, processes: list[str]) -> int:
    """Returns the group of a row: variables of all processes, of each service, addresses, and the rest."""
    if settings_classes().keys() <= set(processes):
        return 0
    return 1 if "<SERVICE>" in row.variables else 2 if "_ADDRESS" in row.variables else 3


def _rows(process: str, settings: type[CallerSettings]) -> Iterator[Row]:
    for described, (name, field) in zip(describe(settings), settings.model_fields.items(), strict=True):
        variables = described.variables
        if name in settings.of_each_process() | settings.own_only:
            variables = [
                each.replace(f"{PREFIX}{process.upper()}_", f"{PREFIX}<SERVICE>_") for each in variables
            ]
        default = described.default if described.default in ("", "required") else f"`{described.default}`"
        allowed = _allowed(field.annotation, field.metadata)
        yield Row(
            variables=", else ".join(f"`{each}`" for each in variables),
            default=f"{default} ({allowed})" if allowed else default,
            meaning=described.meaning.replace("|", "\\|"),
        )


def _allowed(annotation: Any, metadata: list[Any]) -> str:
    if annotation is bool:
        return "on, off"
    if get_origin(annotation) is Literal:
        return ", ".join(get_args(annotation))
    low = next((f"{each.ge}" for each in metadata if isinstance(each, Ge)), "")
    above = next((f"above {each.gt}" for each in metadata if isinstance(each, Gt)), "")
    high = next((f"{each.le}" for each in metadata if isinstance(each, Le)), "")
    below = next((f"below {each.lt}" for each in metadata if isinstance(each, Lt)), "")
    return "–".join(filter(None, (low or above, high or below)))


def _names(processes: list[str]) -> str:
    if settings_classes().keys() <= set(processes):
        return "all"
    return "services" if set(processes) == set(SERVICES) else ", ".join(processes)


# -- commands


def command_list() -> str:
    """Returns a row for each command: its own commands, and what `--help` says of it first."""
    lines = ["| `fiatgate …` | | |", "|---|---|---|"]
    for name, command in sorted(typer.main.get_command(app).commands.items()):  # type: ignore[attr-defined]
        own = ", ".join(f"`{' '.join(path)}`" for path in sorted(_leaves(command, ())))
        lines.append(f"| `{name}` | {own} | {re.split('[:.]', command.help)[0]} |")
    return "\n".join(lines)


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, each in getattr(command, "commands", {}).items():
        yield from _leaves(each, (*path, name))
        if not hasattr(each, "commands"):
            yield (*path, name)


# -- files

PARTS: Final[Mapping[tuple[str, str], Callable[[], str]]] = {
    ("docs/settings.md", "settings"): settings_table,
    ("docs/operations/reference.md", "commands"): command_list,
    **{("docs/api.md", name): render for name, render in api_tables.PARTS.items()},
}


def _between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}: written by tools/docs.py -->\n).*?(<!-- end of {name} -->)", re.DOTALL)


def rewritten(path: str, text: str) -> str:
    """Returns the document with newly made generated parts; SystemExit when a part's marks are missing."""
    for (document, name), render in PARTS.items():
        if document == path:
            content = f"\n{render()}\n\n"
            text, count = _between(name).subn(lambda match, c=content: f"{match[1]}{c}{match[2]}", text)  # type: ignore[misc]
            if count != 1:
                sys.exit(f"{path}: the marks around `{name}` are missing")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing, exit 1 when something would change"
    )
    check = parser.parse_args().check
    stale = []
    for document in sorted({document for document, _ in PARTS}):
        before = (ROOT / document).read_text()
        after = rewritten(document, before)
        if after != before:
            stale.append(document)
            if not check:
                (ROOT / document).write_text(after)
    guide = guide_html()
    if (ROOT / MADE).read_text() != guide:
        stale.append(MADE)
        if not check:
            (ROOT / MADE).write_text(guide)
    if check and stale:
        sys.exit(f"{', '.join(stale)}: not what the code gives; run `make docs`")


if __name__ == "__main__":
    main()
