"""Attacks by someone who has the address of one service's database, and the outcome of each.

Each attack is SQL under the service's own role, or by the owner of the database with triggers off. `%(name)s` is a
thing of `tests/security/shop.py`. `python -m tests.security.attacks` writes the table of docs/security.md.
"""

from typing import Final

from tests.security.attacks import bank, catalog, invoices, merchants, owners, people, webhooks, withdrawals

ATTACKS: Final = (
    *people.ATTACKS,
    *merchants.ATTACKS,
    *catalog.ATTACKS,
    *invoices.ATTACKS,
    *withdrawals.ATTACKS,
    *bank.ATTACKS,
    *webhooks.ATTACKS,
    *owners.ATTACKS,
)
