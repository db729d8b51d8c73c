"""Requests nobody thought of, made from the OpenAPI document: no answer is one that it doesn't have."""

import subprocess
import sys
from pathlib import Path

from tests.gateway.desk import Desk, Shop
from tests.support.stack import Stack

# The same requests each time; a bug found once is found again.
DETERMINISTIC = "--generation-deterministic"
CASES_PER_ENDPOINT = 5


def test_no_request_gets_an_answer_that_is_not_documented(
    stack: Stack, desk: Desk, shop: Shop, method: str, tmp_path: Path
) -> None:
    """Statuses, headers, bodies; what breaks the document is refused, with a key and without; methods get 405.

    Not checked: that whatever the document allows is taken. A currency of three letters may still not exist.
    """
    paid = shop.create()  # so that there is something to read
    desk.confirm(paid["invoice_id"], method)
    result = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--no-color", "run"),
            f"{stack.url}/api/v1/openapi.json",
            *("--header", f"X-Api-Key: {shop.api_key}"),
            *("--phases", "examples,coverage,fuzzing,stateful"),
            *("--max-examples", str(CASES_PER_ENDPOINT)),
            *("--exclude-checks", "positive_data_acceptance"),
            *("--warnings", "off"),
            DETERMINISTIC,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "21 selected / 21 total" in result.stdout
