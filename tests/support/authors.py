"""The author of the calls and operations of tests and harnesses."""

from kit.base import actors
from kit.base.actors import Actor
from kit.rpc.actors import carry_cli


def act_as(name: str) -> None:
    """From now on, this process's calls and operations are those of an operator at the command line."""
    carry_cli(name)
    actors.bind_process(Actor(kind="cli", name=name, surface="cli"))
