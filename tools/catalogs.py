"""Updates the catalogs of the customer's page to the sentences of its code and templates.

python tools/catalogs.py            add new sentences (untranslated), remove old ones
python tools/catalogs.py --check    exit 1 when a catalog lacks a sentence or has one too many
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, python looks beside the script only

from gateway.pay.languages import DEFAULT, LOCALES, NAMES  # noqa: E402  see the line above

PAGE: Final = ROOT / "gateway" / "pay"
METHODS: Final = [("**.py", "python"), ("**/templates/**.html", "jinja2")]
OPTIONS: Final = {"**/templates/**.html": {"encoding": "utf-8", "silent": "false", "trimmed": "true"}}
KEYWORDS: Final = {"_": None, "N_": None}
WIDTH: Final = 110
NOISE: Final = tuple(
    f'"{name}: '.encode()
    for name in (
        "Project-Id-Version",
        "Report-Msgid-Bugs-To",
        "POT-Creation-Date",
        "PO-Revision-Date",
        "Last-Translator",
        "Language-Team",
        "Generated-By",
    )
)


def sentences() -> Iterator[tuple[str, str]]:
    """Yields every sentence of the page with its file."""
    found = extract_from_dir(PAGE, METHODS, OPTIONS, KEYWORDS)
    for file, _, message, *_ in found:
        assert isinstance(message, str)
        yield message, file


def catalog(code: str) -> Catalog:
    """Returns the catalog of a language as it is committed."""
    with (LOCALES / f"{code}.po").open("rb") as file:
        return read_po(file, locale=code)


def updated(code: str) -> bytes:
    """Returns the right content of the file of a language: the page's sentences, with the known translations."""
    path = LOCALES / f"{code}.po"
    known = catalog(code) if path.exists() else Catalog(locale=code)
    new = Catalog(locale=code, header_comment=f"# The customer's page in {NAMES[code]}.", fuzzy=False)
    for message, file in sentences():
        old = known.get(message)
        new.add(message, old.string if old else "", locations=[(file, 0)])
    out = BytesIO()
    write_po(out, new, width=WIDTH, include_lineno=False)
    # Header lines without use are removed: dates would change with every run.
    lines = out.getvalue().splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(NOISE))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing, fail when something would change"
    )
    check: bool = parser.parse_args().check
    stale = 0
    for code in NAMES:
        path = LOCALES / f"{code}.po"
        if code != DEFAULT and (not path.exists() or path.read_bytes() != updated(code)):
            stale += 1
            if not check:
                path.write_bytes(updated(code))
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
