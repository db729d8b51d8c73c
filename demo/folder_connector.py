"""An example of a connector (docs/feed.md): posts the lines of the files in a folder, and its heartbeat.

`FEED_KEY=fgc_… python -m demo.folder_connector https://pay.example FOLDER`. A file is JSON, a list of lines, or CSV
with the names of their fields in its first row. Write it under another name and rename it when it is whole. Once its
lines are taken, its name ends in `.done`, or in `.conflict` if a person must look at one; in `.refused` if none was
taken, and the reason is printed. Until then it is posted again: lines that are known change nothing.
"""

import csv
import json
import os
import sys
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import Any, Final

LINES_MOST: Final = 500
PAUSE_SECONDS: Final = 10.0
SECONDS: Final = 15.0
FOR_GOOD: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def post_folder(url: str, key: str, folder: Path) -> None:
    """Posts each file of the folder, then the heartbeat. Raises OSError when the gateway takes none now."""
    for file in sorted(each for each in folder.iterdir() if each.suffix in (".csv", ".json")):
        end = "done"
        try:
            lines = lines_of(file)
            for first in range(0, len(lines), LINES_MOST):
                for outcome in post(url, key, lines[first : first + LINES_MOST]):
                    if outcome["outcome"] == "conflict":
                        end = "conflict"
                        sys.stderr.write(f"{file.name}: {outcome['source_id']}: {outcome['why']}\n")
        except urllib.error.HTTPError as error:
            if error.code not in FOR_GOOD:
                raise
            end = "refused"
            sys.stderr.write(f"{file.name}: {error.read().decode(errors='replace')}\n")
        except ValueError as error:  # no JSON
            end = "refused"
            sys.stderr.write(f"{file.name}: {error}\n")
        file.rename(file.with_name(f"{file.name}.{end}"))
    post(url, key, [])


def lines_of(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".csv":
        rows = csv.DictReader(file.read_text().splitlines())
        return [{name: value for name, value in row.items() if value} for row in rows]
    lines: list[dict[str, Any]] = json.loads(file.read_text())
    return lines


def post(url: str, key: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the outcome of each line."""
    request = urllib.request.Request(  # noqa: S310  the address is the operator's own
        f"{url}/feed/v1/lines",
        json.dumps({"lines": lines}).encode(),
        {"X-Api-Key": key, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310  the same
        outcomes: list[dict[str, Any]] = json.load(answer)["data"]
    return outcomes


def main() -> None:
    url, folder = sys.argv[1:]
    pause = Event()
    while True:
        try:
            post_folder(url, os.environ["FEED_KEY"], Path(folder))
        except OSError as error:  # again after the pause
            sys.stderr.write(f"{error}\n")
        pause.wait(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
