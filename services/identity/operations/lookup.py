"""The first step of several operations: find the merchant or refuse."""

from uuid import UUID

from sqlalchemy.orm import Session

from kit.rpc import values
from services.identity import errors
from services.identity.domain.merchants import Merchant
from services.identity.store import merchants


def merchant_or_refuse(tx: Session, merchant_id: UUID) -> Merchant:
    merchant = merchants.merchant(tx, merchant_id)
    if merchant is None:
        raise errors.merchant_not_found()
    return merchant


def id_of_merchant(text: str) -> UUID:
    return values.uuid_or(errors.merchant_not_found, text)
