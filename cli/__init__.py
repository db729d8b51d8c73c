"""The `fiatgate` command: the work of an operator, over the services' gRPC.

It owns no data: every command is one or a few calls. `commands/` has one file per word after `fiatgate`; `output`
prints for people and for scripts; `connection` finds the services; `verifying` and `demonstrating` are the two long
commands.
"""

import gc
from typing import Final

GARBAGE_OBJECTS: Final = 100_000
"""New objects after which the garbage collector runs. At Python's own 700 it took a tenth of a short command's time,
and found nothing: what a command imports stays to its end.
"""
gc.set_threshold(GARBAGE_OBJECTS)
