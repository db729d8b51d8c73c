"""The catalog's event: one hint without content. A service that keeps a snapshot loads it again."""

from typing import Final

from fiatgate.catalog.v1 import catalog_pb2
from kit.events.subjects import subject_of

CATALOG_CHANGED: Final = subject_of(catalog_pb2.CatalogChanged)
