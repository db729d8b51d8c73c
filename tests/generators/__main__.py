"""`python -m tests.generators [NAME ...]`: what `make generators` calls.

Exit code 0 when each client did what it must, 1 when one did not, 2 when the machine lacks a tool of one.
"""

import argparse
import shutil
import sys
import tempfile
import venv
from pathlib import Path

from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from tests.generators.tools import GENERATORS, PIP, Failed, Place
from tests.support.stack import Stack

EXPECTED = "pending null pending DUPLICATE_EXTERNAL_ID CURRENCY_INVALID"
"""Each program prints this: the state and the deal of a new invoice, the deal of another one, two refusals."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.generators", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default all: {', '.join(GENERATORS)}")
    names = parser.parse_args().names or list(GENERATORS)
    if unknown := set(names) - set(GENERATORS):
        parser.error(f"no such generator: {', '.join(sorted(unknown))}; there are {', '.join(GENERATORS)}")
    if missing := _missing(names):
        _tell("\n".join(missing))
        return 2
    with tempfile.TemporaryDirectory(prefix="fiatgate-generators-") as folder:
        return _run(names, Path(folder))


def _missing(names: list[str]) -> list[str]:
    needed = {need: package for name in names for need, package in GENERATORS[name].needs.items()}
    return [
        f"{need} is missing: install Debian's {package}"
        for need, package in needed.items()
        if not (shutil.which(need) or Path(need).is_file())
    ]


def _run(names: list[str], folder: Path) -> int:
    stack = Stack(folder / "stack")
    stack.start()
    try:
        document = folder / "openapi.json"
        document.write_bytes(stack.request("GET", "/api/v1/openapi.json").content)
        stack.cli("checkout", "select", stack.demo["invoice_id"], "sepa")
        python = folder / "environment" / "bin" / "python"
        venv.create(folder / "environment", with_pip=True, symlinks=True)
        Place(folder, document, python).run(str(python), "-m", "pip", "install", "-q", *PIP)
        works = [_works(name, Place(folder / name, document, python), stack) for name in names]
        return int(not all(works))
    finally:
        stack.stop()


def _works(name: str, place: Place, stack: Stack) -> bool:
    """Generates, compiles and runs a client; prints the result."""
    place.folder.mkdir()
    began = monotonic_seconds()
    try:
        printed = place.run(
            *GENERATORS[name].make(place),
            URL=stack.url,
            KEY=stack.demo["api_key"],
            ORDER=f"{name}-{new_id().hex}",
            CHOSEN=stack.demo["invoice_id"],
        ).strip()
        problem = "" if printed == EXPECTED else f"it printed {printed!r} in place of {EXPECTED!r}"
    except Failed as failed:
        problem = str(failed)
    _tell(f"{name} ({GENERATORS[name].tool}): {problem or 'works'}, {monotonic_seconds() - began:.0f} s")
    return not problem


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
