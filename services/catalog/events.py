"""What the catalog tells others: one hint without content. Whoever keeps a snapshot loads it again."""

from typing import Final

CATALOG_CHANGED: Final = "fiatgate-hint.catalog"
