"""The catalog's event: one hint without content. A service that keeps a snapshot loads it again."""

from typing import Final

CATALOG_CHANGED: Final = "fiatgate-hint.catalog"
