"""Ids that a command completes."""

from typing import Final

from kit.db.finding import Ids
from services.bank.models import Connector, Line

IDS: Final[Ids] = {"line": Line.id, "connector": Connector.id}
