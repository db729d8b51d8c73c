"""The garbage collector of a process that has started."""

import gc
from typing import Final

GARBAGE_OBJECTS: Final = 20_000
"""The number of new objects that starts the garbage collector. Nearly all are freed without it; Python's default of 700
is for programs with fewer objects in use."""


def settle_memory() -> None:
    """Excludes the objects made at start-up from garbage collection, because they live as long as the process.

    Scanning that half a million objects again and again took a fifth of the delivery engine's time. Scanning those in
    use took another fifteenth, and rarer scans save most of that.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)
