"""The currencies and payment methods that the filters of lists offer."""

from collections.abc import Awaitable, Mapping
from typing import Final

from console.calls import or_none
from fiatgate.catalog.v1 import catalog_pb2

ALL: Final = {"": "All"}


async def catalog_choices(
    asked: Awaitable[catalog_pb2.GetCatalogResponse],
) -> Mapping[str, Mapping[str, str]]:
    """Returns the words of the filters `currency` and `method`; while catalog is away, those of the address alone."""
    catalog = await or_none(asked) or catalog_pb2.GetCatalogResponse()
    return {
        "currency": ALL | {each.code: each.code for each in catalog.currencies},
        "method": ALL | {each.method_code: each.name for each in catalog.methods},
    }
