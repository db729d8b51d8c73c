"""The processor time that a stack's processes have taken."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import psutil

from tests.support.stack import Stack


def processor_seconds(stack: Stack, only: Collection[str] = ()) -> dict[str, float]:
    """By program, children that live or have ended included; of all programs, or `only` some."""
    ids = {name: state.process_id for name, state in stack.programs().items() if not only or name in only}
    return {name: _seconds_of(psutil.Process(process_id)) for name, process_id in ids.items()}


def _seconds_of(top: psutil.Process) -> float:
    """A child that ends meanwhile is left out: its time is its parent's from then on."""
    times = []
    for each in (top, *top.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times.append(each.cpu_times())
    return sum(each.user + each.system + each.children_user + each.children_system for each in times)
