"""Lines of CSV (RFC 4180)."""

import csv
from collections.abc import Sequence
from io import StringIO

from kit.base.cells import harmless


def csv_line(cells: Sequence[str]) -> bytes:
    """Returns one line in UTF-8."""
    out = StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(map(harmless, cells))
    return out.getvalue().encode()
