"""`python -m deploy.local run [--port 8080]`: the command behind `make run`."""

from __future__ import annotations

import argparse
import os
import sys

from deploy.local import ports
from deploy.local.home import Home
from deploy.local.run import Runner


def main() -> int:
    """Parses the command line and runs; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="start the stack and keep it until Ctrl-C")
    run.add_argument("--port", type=int, default=8080, help="where the gateway listens (default 8080)")
    run.add_argument(
        "--volatile",
        action="store_true",
        help="do not wait for the disk: for tests, the data may be lost",
    )
    run.add_argument(
        "--serve-only",
        action="store_true",
        help="services answer the operator, but expire, credit and deliver nothing, without gateway and consoles: to "
        "look at restored databases first",
    )
    run.add_argument(
        "--inner-ports",
        type=int,
        nargs=2,
        metavar=("FIRST", "LAST"),
        default=(ports.ALL[0], ports.ALL[-1]),
        help="choose the ports of all other processes from these: for tests, which start several stacks at once",
    )
    arguments = parser.parse_args()
    first, last = arguments.inner_ports
    ports.choose_from(range(first, last + 1))
    runner = Runner(
        Home.of(os.environ),
        port=arguments.port,
        caller=os.environ,
        durable=not arguments.volatile,
        mode="serve" if arguments.serve_only else "run",
    )
    return runner.run()


if __name__ == "__main__":
    sys.exit(main())
