"""The generators by name: version, what the machine must have, and how each makes a client that runs."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CLIENTS: Final = Path(__file__).parent / "clients"
GUZZLE: Final = "/usr/share/php/GuzzleHttp/autoload.php"
STEP_SECONDS: Final = 900

OPENAPI_GENERATOR: Final = "openapi-generator-cli==7.26.0"
OPENAPI_PYTHON_CLIENT: Final = "openapi-python-client==0.29.1"
PIP: Final = (
    OPENAPI_GENERATOR,
    OPENAPI_PYTHON_CLIENT,
    "pydantic==2.14.4",
    "urllib3==2.8.0",
    "python-dateutil==2.9.0.post0",
)
TYPESCRIPT: Final = ("typescript@5.9.3", "@types/node@20.19.43")
OPENAPI_TYPESCRIPT: Final = "openapi-typescript@7.13.0"
OPENAPI_FETCH: Final = "openapi-fetch@0.17.0"
HEY_API: Final = "@hey-api/openapi-ts@0.94.0"
OAPI_CODEGEN: Final = "github.com/oapi-codegen/oapi-codegen/v2@v2.8.2"
OAPI_RUNTIME: Final = "github.com/oapi-codegen/runtime@v1.8.0"
OGEN: Final = "github.com/ogen-go/ogen@v1.24.0"

JAVA: Final = {"java": "openjdk-17-jre-headless"}
MAVEN: Final = {"javac": "openjdk-17-jdk-headless", "mvn": "maven"}
PHP: Final = {"php": "php-cli, php-curl and php-mbstring", GUZZLE: "php-guzzlehttp-guzzle"}
NODE: Final = {"node": "nodejs", "npm": "npm"}
GO: Final = {"go": "golang-go"}


class Failed(Exception):
    """A generator, a compiler or a client failed; the text is what it printed."""


@dataclass(frozen=True)
class Place:
    """An empty folder for one client, the document, and an environment with `PIP`."""

    folder: Path
    document: Path
    python: Path

    def run(self, *command: str, **environment: str) -> str:
        """Returns what the command printed. Raises Failed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=STEP_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}")
        return done.stdout

    def openapi_generator(self, language: str, *options: str) -> None:
        tool = str(self.python.with_name("openapi-generator-cli"))
        self.run(tool, "generate", "-g", language, "-i", str(self.document), "-o", "client", *options)

    def take(self, program: str, name: str) -> None:
        """Copies a program of `clients/` beside the generated code."""
        shutil.copy(CLIENTS / program, self.folder / name)


def java(place: Place) -> Sequence[str]:
    place.openapi_generator("java")
    place.take("Client.java", "client/src/main/java/Client.java")
    libraries = ("dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=libraries")
    place.run("mvn", "-q", "-B", "-f", "client", "-Dmaven.test.skip=true", "compile", *libraries)
    return ("java", "-cp", "client/target/classes:client/libraries/*", "Client")


def python(place: Place) -> Sequence[str]:
    # Without the webhook: its file has parameters without types, which Python can't read.
    place.openapi_generator("python", "--global-property", "apis,models,supportingFiles")
    place.take("openapi_generator.py", "client/run.py")
    place.run(str(place.python), "-m", "compileall", "-q", "client/openapi_client")
    return (str(place.python), "client/run.py")


def typescript(place: Place) -> Sequence[str]:
    place.openapi_generator("typescript-fetch")
    return _compiled(place, "openapi-generator.ts")


def php(place: Place) -> Sequence[str]:
    place.openapi_generator("php")
    place.take("client.php", "run.php")
    for path in sorted((place.folder / "client/lib").rglob("*.php")):
        place.run("php", "-l", str(path))
    return ("php", "-d", "error_reporting=E_ALL", "-d", "display_errors=stderr", "run.php")


def openapi_python_client(place: Place) -> Sequence[str]:
    tool = str(place.python.with_name("openapi-python-client"))
    place.run(tool, "generate", "--path", str(place.document), "--output-path", "client", "--meta", "none")
    place.take("openapi_python_client.py", "run.py")
    place.run(str(place.python), "-m", "compileall", "-q", "client")
    return (str(place.python), "run.py")


def openapi_typescript(place: Place) -> Sequence[str]:
    _npm(place, OPENAPI_TYPESCRIPT, OPENAPI_FETCH)
    place.run("node_modules/.bin/openapi-typescript", str(place.document), "-o", "client.ts")
    return _compiled(place, "openapi-typescript.ts")


def hey_api(place: Place) -> Sequence[str]:
    _npm(place, HEY_API, *TYPESCRIPT)
    place.run("node_modules/.bin/openapi-ts", "-i", str(place.document), "-o", "client")
    return _compiled(place, "hey-api.ts")


def _npm(place: Place, *packages: str) -> None:
    place.run("npm", "install", "--silent", "--no-audit", "--no-fund", *packages)


def _compiled(place: Place, program: str) -> Sequence[str]:
    _npm(place, *TYPESCRIPT)
    place.take(program, "run.ts")
    place.run(
        *("node_modules/.bin/tsc", "run.ts", "--outDir", "out", "--strict", "--skipLibCheck"),
        *("--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--types", "node"),
        *("--module", "commonjs", "--moduleResolution", "node10"),
    )
    return ("node", "out/run.js")


def oapi_codegen(place: Place) -> Sequence[str]:
    (place.folder / "client").mkdir()
    tool = OAPI_CODEGEN.replace("@", "/cmd/oapi-codegen@")
    options = ("-generate", "types,client", "-package", "client", "-o", "client/client.go")
    place.run("go", "run", tool, *options, str(place.document))
    return _built(place, "oapi-codegen.go", OAPI_RUNTIME)


def ogen(place: Place) -> Sequence[str]:
    tool = OGEN.replace("@", "/cmd/ogen@")
    place.run("go", "run", tool, "--target", "client", "--package", "client", str(place.document))
    return _built(place, "ogen.go", OGEN)


def _built(place: Place, program: str, module: str) -> Sequence[str]:
    place.take(program, "run.go")
    place.run("go", "mod", "init", "example.org/shop")
    place.run("go", "get", module)
    place.run("go", "mod", "tidy")
    place.run("go", "build", "-o", "run", ".")
    return ("./run",)


@dataclass(frozen=True)
class Generator:
    """tool   name and version
    needs  the Debian package of each command or file that the machine must have
    make   returns the command of the client, which it has generated and compiled
    """

    tool: str
    needs: Mapping[str, str]
    make: Callable[[Place], Sequence[str]]


GENERATORS: Final[Mapping[str, Generator]] = {
    "java": Generator(OPENAPI_GENERATOR, JAVA | MAVEN, java),
    "python": Generator(OPENAPI_GENERATOR, JAVA, python),
    "typescript": Generator(OPENAPI_GENERATOR, JAVA | NODE, typescript),
    "php": Generator(OPENAPI_GENERATOR, JAVA | PHP, php),
    "openapi-python-client": Generator(OPENAPI_PYTHON_CLIENT, {}, openapi_python_client),
    "openapi-typescript": Generator(OPENAPI_TYPESCRIPT, NODE, openapi_typescript),
    "hey-api": Generator(HEY_API, NODE, hey_api),
    "oapi-codegen": Generator(OAPI_CODEGEN, GO, oapi_codegen),
    "ogen": Generator(OGEN, GO, ogen),
}
