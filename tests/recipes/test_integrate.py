"""docs/integrate.md is run as it stands: from nothing to a paid invoice."""

import re
import subprocess
import sys
import urllib.error
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from gateway.openapi.page import RECIPES
from tests.support.stack import Stack

ROOT: Final = Path(__file__).resolve().parents[2]
TEXT: Final = (ROOT / "docs" / "integrate.md").read_text()
ORDER: Final = "basket-of-the-guide"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def commands(stack: Stack, port: int) -> str:
    """The guide's commands as one script, against this stack in place of a fresh `make run`."""
    script = "\n".join(block for block in blocks("sh") if not block.startswith("make "))
    here = {
        "http://127.0.0.1:8080": stack.url,
        "http://127.0.0.1:9001": f"http://127.0.0.1:{port}",
        '"$PWD/.venv/bin:$PATH"': f'"{Path(sys.executable).parent}:$PATH"',
        "shop.py &": "shop.py > shop.out 2> shop.err & echo $! > shop.pid",
        "cp gateway/": f"cp {ROOT}/gateway/",
        ".fiatgate/": f"{stack.home.folder}/",
        "basket-7": ORDER,  # other tests buy at the same shop
        "customer-7": f"customer-of-{ORDER}",
    }
    for there, replacement in here.items():
        assert there in script, there
        script = script.replace(there, replacement)
    return f"set -eu\n{script}"


def test_the_guide_leads_to_a_paid_invoice(stack: Stack, tmp_path: Path) -> None:
    port = free_ports(1)[0]
    shop, _ = blocks("python")
    (stack.home.folder / "shop.py").write_text(shop.replace("9001", str(port)))
    environment = {"FIATGATE_HOME": str(stack.home.folder), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    told = tmp_path / "shop.out"
    try:
        result = subprocess.run(
            ["sh", "-c", commands(stack, port)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        wait_until(
            lambda: told.read_text() == f"{ORDER} success 49.90 EUR\n", "the webhook", timeout_seconds=30
        )
    finally:
        subprocess.run(["sh", "-c", "kill $(cat shop.pid)"], cwd=tmp_path, check=False)
    invoice = stack.request("GET", f"/api/v1/invoices/{ORDER}").json()["data"]
    assert (invoice["status"], invoice["deal"]["status"]) == ("success", "completed")


def test_an_attempt_that_was_made_before_gives_its_link_unless_the_amount_differs(stack: Stack) -> None:
    there: dict[str, Any] = {}
    exec(blocks("python")[1], there)
    customer, key = f"customer-of-{ORDER}-again", stack.demo["api_key"]
    wanted = (stack.url, key, "order-of-the-guide", 1, "49.90", "EUR", customer)
    link = there["payment_link"](*wanted)
    assert there["payment_link"](*wanted) == link
    with pytest.raises(urllib.error.HTTPError, match="409"):
        there["payment_link"](*wanted[:4], "50.00", *wanted[5:])


def test_every_recipe_is_linked() -> None:
    assert set(re.findall(r"recipes/(\w+\.\w+)\)", TEXT)) == set(RECIPES.values())
