"""Ids by their beginning. Nothing else of people is searched."""

from typing import Final

from kit.db.finding import Ids
from services.accounts.models import Invitation, Person, Session

IDS: Final[Ids] = {"person": Person.id, "invitation": Invitation.id, "session": Session.id}
