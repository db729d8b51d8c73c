"""Sets how seldom the garbage collector runs. Import it first: most objects of a command are what it imports."""

import gc
from typing import Final

NEW_OBJECTS: Final = 100_000
"""More than a command imports. At Python's own 700 the collector took a tenth of a short command's time, and found
nothing.
"""

gc.set_threshold(NEW_OBJECTS)
