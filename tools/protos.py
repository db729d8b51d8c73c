"""Generates the `fiatgate` package from `protos/` (python path == proto package).

python tools/protos.py            regenerate fiatgate/
python tools/protos.py --check    exit 1 when fiatgate/ differs from protos/
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
PACKAGE = "fiatgate"
_WELL_KNOWN = Path(protoc.__file__).parent / "_proto"


def generate(out: Path) -> None:
    """Writes the whole generated package below `out`; SystemExit when protoc refuses a file."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    # The plugins are beside this interpreter; protoc searches the PATH for them.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    arguments = [
        "protoc",
        f"-I{PROTOS}",
        f"-I{_WELL_KNOWN}",
        f"--python_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_out=quiet:{out}",
        f"--mypy_grpc_out=quiet:{out}",
        *sources,
    ]
    if protoc.main(arguments) != 0:
        sys.exit("protoc refused the protos; its message stands above")
    for folder in {out / PACKAGE, *(p.parent for p in out.rglob("*_pb2.py"))}:
        for package in (folder, *(p for p in folder.parents if p != out and out in p.parents)):
            (package / "__init__.py").touch()
    # A proto without a service gives a pair of empty *_pb2_grpc files, which are removed.
    for grpc_file in out.rglob("*_pb2_grpc.py"):
        if "def add_" not in grpc_file.read_text():
            grpc_file.unlink()
            grpc_file.with_suffix(".pyi").unlink(missing_ok=True)


def _differences(left: Path, right: Path) -> list[str]:
    def files(folder: Path) -> set[str]:
        return {
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    names = files(left) ^ files(right)
    same = files(left) & files(right)
    return sorted(names | {n for n in same if not filecmp.cmp(left / n, right / n, shallow=False)})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        committed = ROOT / PACKAGE
        if check:
            stale = _differences(fresh / PACKAGE, committed)
            if stale:
                sys.exit("fiatgate/ is not what protos/ gives; run `make protos`:\n  " + "\n  ".join(stale))
            return
        shutil.rmtree(committed, ignore_errors=True)
        shutil.copytree(fresh / PACKAGE, committed)


if __name__ == "__main__":
    main()
