"""`make weight`: how much there is to read. Prints each measure beside its limit; ends with 1 when one is exceeded.

Lines are those of `wc -l`, words those of `wc -w`. `python -m benchmarks.bench_stack` prints processes and memory of a
stack, `python -m benchmarks.bench_api` create-invoice beside the bare path.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PRODUCTION: Final = ("kit", "services", "console", "gateway", "cli", "deploy", "tools", "demo")
DOCUMENTS: Final = ("docs/**/*.md", "benchmarks/*.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
FIELD: Final = "purpose"
"""A field of an invoice that a merchant gives and that is shown everywhere: a new one touches the same files."""
FIELD_FILES: Final = re.compile(
    r"(protos/fiatgate/invoices|services/invoices|gateway/(api|json|openapi|pay)|console/(invoices|links|words)"
    r"|cli|docs/(api|integrate)).*\.(proto|py|html|yaml|md)"
)

root: Final = Path(__file__).parent.parent


def lines(*folders: str) -> int:
    """Returns the lines of Python in these folders."""
    return sum(
        path.read_text().count("\n") for folder in folders for path in sorted((root / folder).rglob("*.py"))
    )


def words() -> dict[str, int]:
    """Returns the words of each document, by its path."""
    found = (path for pattern in DOCUMENTS for path in sorted(root.glob(pattern)))
    return {str(path.relative_to(root)): len(path.read_text().split()) for path in found}


def files_of_field() -> int:
    """Returns the number of files that name the field, without tests, translations and generated code."""
    tracked = subprocess.run(  # noqa: S603
        ["git", "grep", "-lw", FIELD],  # noqa: S607
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return sum(1 for path in tracked.stdout.split() if FIELD_FILES.fullmatch(path))


def main() -> int:
    documents = words()
    longest = max(documents, key=lambda path: documents[path])
    rows = [
        ("production, lines of Python", lines(*PRODUCTION), 65_000),
        ("tests, lines of Python", lines("tests"), 55_000),
        ("benchmarks, lines of Python", lines("benchmarks"), 3_500),
        ("documents, words", sum(documents.values()), 65_000),
        (f"longest document, words: {longest}", documents[longest], 8_000),
        (f"files that name the invoice's field `{FIELD}`", files_of_field(), 18),
    ]
    return report(rows)


def report(rows: Iterable[tuple[str, int, int]]) -> int:
    is_over = False
    for name, measured, limit in rows:
        mark = "" if measured <= limit else "  over"
        is_over |= measured > limit
        sys.stdout.write(f"{name:<64}{measured:>9,}  <= {limit:>7,}{mark}\n")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
