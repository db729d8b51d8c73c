"""The currencies and payment methods that the filters of lists offer, and the methods without a free place."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from console.calls import or_none
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2

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


async def methods_by_code(
    asked: Awaitable[catalog_pb2.GetCatalogResponse],
) -> Mapping[str, catalog_pb2.PaymentMethod]:
    """Returns the payment methods; none while catalog is away."""
    catalog = await or_none(asked)
    return {} if catalog is None else {each.method_code: each for each in catalog.methods}


async def full_methods(
    asked: Awaitable[catalog_pb2.GetCatalogResponse],
    asked_places: Awaitable[invoices_pb2.ListMethodPlacesResponse],
) -> Sequence[catalog_pb2.PaymentMethod]:
    """Returns the active methods without a free place; none while catalog or invoices is away."""
    methods, listed = await asyncio.gather(methods_by_code(asked), or_none(asked_places))
    if listed is None:
        return []
    places = {each.method_code: each for each in listed.methods}
    return [
        each
        for code, each in methods.items()
        if each.active and (code not in places or places[code].taken >= places[code].places)
    ]
