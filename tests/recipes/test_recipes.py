"""The recipes for integrators say what the sender signs: each is run, Python's always, the others by `make soak`."""

import base64
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from gateway.openapi.page import RECIPES
from services.webhooks.domain import signature

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "gateway" / "openapi" / "recipes"

SECRET: Final = "whsec_Zu3r-Ünïque"
TIMESTAMP: Final = "1768478982"
BODY: Final = '{"event_id":"0192f0c7","external_id":"Größe 42 🙂","amount":"100.50"}'.encode()
GENUINE: Final = signature(SECRET, TIMESTAMP, BODY)


@dataclass(frozen=True)
class Case:
    secret: str = SECRET
    timestamp: str = TIMESTAMP
    signature: str = GENUINE
    body: bytes = BODY

    def line(self) -> str:
        """Four values in base64, each behind a comma, so that empty ones can be told."""
        values = (self.secret.encode(), self.timestamp.encode(), self.signature.encode(), self.body)
        return "".join("," + base64.b64encode(value).decode() for value in values)


CASES: Final[Mapping[str, tuple[Case, bool]]] = {
    "genuine": (Case(), True),
    "an empty body": (Case(signature=signature(SECRET, TIMESTAMP, b""), body=b""), True),
    "any bytes": (Case(signature=signature(SECRET, TIMESTAMP, b"\x00\xff\r\n"), body=b"\x00\xff\r\n"), True),
    "another body": (Case(body=BODY + b" "), False),
    "another time": (Case(timestamp="1768478983"), False),
    "another secret": (Case(secret="whsec_other"), False),
    "another signature": (Case(signature="0" * 64), False),
    "a part of it": (Case(signature=GENUINE[:63]), False),
    "more than it": (Case(signature=GENUINE + "0"), False),
    "upper case": (Case(signature=GENUINE.upper()), False),
    "not ASCII": (Case(signature="ü" * 32), False),
    "no signature": (Case(signature=""), False),
    "no time": (Case(timestamp=""), False),
}

# -- each language: how to run its recipe over lines of input, one "true" or "false" a line


def python(folder: Path) -> list[str]:
    (folder / "run.py").write_text(
        "import base64, sys\nfrom signature import is_genuine\n"
        "for line in sys.stdin:\n"
        "    s, t, g, b = (base64.b64decode(each) for each in line.strip().split(',')[1:])\n"
        "    print(str(is_genuine(s.decode(), t.decode(), g.decode(), b)).lower())\n"
    )
    return ["python3", "run.py"]


def node(folder: Path) -> list[str]:
    (folder / "run.mjs").write_text(
        'import { isGenuine } from "./signature.mjs";\nimport { readFileSync } from "node:fs";\n'
        'for (const line of readFileSync(0, "utf8").trim().split("\\n")) {\n'
        '  const [s, t, g, b] = line.split(",").slice(1).map((each) => Buffer.from(each, "base64"));\n'
        "  console.log(isGenuine(s.toString(), t.toString(), g.toString(), b));\n}\n"
    )
    return ["node", "run.mjs"]


def php(folder: Path) -> list[str]:
    (folder / "run.php").write_text(
        "<?php\nrequire 'signature.php';\n"
        "foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $line) {\n"
        "    [$s, $t, $g, $b] = array_map('base64_decode', array_slice(explode(',', $line), 1));\n"
        '    echo is_genuine($s, $t, $g, $b) ? "true\\n" : "false\\n";\n}\n'
    )
    return ["php", "run.php"]


def go(folder: Path) -> list[str]:
    (folder / "go.mod").write_text("module shop\n\ngo 1.21\n")
    (folder / "fiatgate").mkdir()
    (folder / "signature.go").rename(folder / "fiatgate" / "signature.go")
    (folder / "main.go").write_text(
        'package main\n\nimport (\n\t"bufio"\n\t"encoding/base64"\n\t"os"\n\t"strings"\n\n\t"shop/fiatgate"\n)\n\n'
        "func main() {\n\tlines := bufio.NewScanner(os.Stdin)\n\tfor lines.Scan() {\n"
        "\t\tvar v [4][]byte\n"
        '\t\tfor i, each := range strings.Split(lines.Text(), ",")[1:] {\n'
        "\t\t\tv[i], _ = base64.StdEncoding.DecodeString(each)\n\t\t}\n"
        "\t\tif fiatgate.IsGenuine(string(v[0]), string(v[1]), string(v[2]), v[3]) {\n"
        '\t\t\tos.Stdout.WriteString("true\\n")\n\t\t} else {\n\t\t\tos.Stdout.WriteString("false\\n")\n\t\t}\n\t}\n}\n'
    )
    return ["go", "run", "."]


def java(folder: Path) -> list[str]:
    (folder / "Run.java").write_text(
        "import java.nio.charset.StandardCharsets;\nimport java.util.Base64;\nimport java.util.Scanner;\n\n"
        "public class Run {\n    public static void main(String[] arguments) throws Exception {\n"
        "        Scanner lines = new Scanner(System.in);\n        while (lines.hasNextLine()) {\n"
        '            String[] v = lines.nextLine().split(",", -1);\n'
        "            byte[][] b = new byte[5][];\n"
        "            for (int i = 1; i < 5; i++) b[i] = Base64.getDecoder().decode(v[i]);\n"
        "            System.out.println(Signature.isGenuine(text(b[1]), text(b[2]), text(b[3]), b[4]));\n"
        "        }\n    }\n\n    static String text(byte[] bytes) {\n"
        "        return new String(bytes, StandardCharsets.UTF_8);\n    }\n}\n"
    )
    subprocess.run(["javac", "Run.java", "Signature.java"], cwd=folder, check=True)
    return ["java", "Run"]


LANGUAGES: Final[Mapping[str, Callable[[Path], list[str]]]] = {
    "Python": python,
    "Node": node,
    "PHP": php,
    "Go": go,
    "Java": java,
}


@pytest.mark.parametrize(
    "language",
    [pytest.param(each, marks=[] if each == "Python" else [pytest.mark.soak]) for each in LANGUAGES],
)
def test_a_recipe_tells_genuine_webhooks_from_others(language: str, tmp_path: Path) -> None:
    shutil.copy(FOLDER / RECIPES[language], tmp_path)
    lines = "".join(f"{case.line()}\n" for case, _ in CASES.values())
    command = LANGUAGES[language](tmp_path)
    result = subprocess.run(
        command, cwd=tmp_path, input=lines, capture_output=True, text=True, timeout=250, check=False
    )
    assert result.returncode == 0, result.stderr
    answers = dict(zip(CASES, result.stdout.split(), strict=True))
    assert answers == {name: str(expected).lower() for name, (_, expected) in CASES.items()}


def test_every_recipe_is_run_here() -> None:
    assert set(LANGUAGES) == set(RECIPES)
    assert {path.name for path in FOLDER.iterdir() if path.suffix != ".pyc" and path.is_file()} == set(
        RECIPES.values()
    )
