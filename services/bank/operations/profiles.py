"""Profiles of CSV files by name: the form of a bank's files, which is described once. Each counts with its act only."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final

from sqlalchemy.orm import Session

from fiatgate.bank.v1 import bank_pb2 as pb
from kit.audit import acts
from kit.audit.decisions import before_by_acts, is_as_decided
from kit.base import actors
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import values
from kit.rpc.errors import Refused, invalid_together, not_decided
from services.bank.files.csv_files import ProfileRefused, profile_from_json
from services.bank.store import profiles
from services.bank.store.decisions import CSV_PROFILE
from services.bank.store.views import ProfileView
from services.bank.wiring import Deps

PROFILES_LISTED: Final = 1000
PROFILE_MAX_CHARACTERS: Final = most_of(pb.SaveCsvProfileRequest, "profile")


def list_csv_profiles(deps: Deps) -> Sequence[ProfileView]:
    with deps.db.autocommit() as connection:
        return profiles.by_names(connection, PROFILES_LISTED)


@retry_conflicts
def save_csv_profile(deps: Deps, *, name: str, profile: str) -> ProfileView:
    """Makes the profile, or puts it in the place of the one of this name."""
    values.together(name=lambda: values.code("name", name), profile=lambda: checked(profile))
    saved = ProfileView(name=name, profile=profile, actor=str(actors.current()), changed_at=deps.clock.now())
    with deps.db.transaction() as tx:
        _put(tx, "csv-profile.save", saved)
    return saved


@retry_conflicts
def delete_csv_profile(deps: Deps, *, name: str) -> None:
    with deps.db.transaction() as tx:
        found = profiles.locked(tx, values.code("name", name))
        if found is None:
            raise unknown("name")
        actor, now = str(actors.current()), deps.clock.now()
        _put(tx, "csv-profile.delete", replace(found, profile=None, actor=actor, changed_at=now))


def given(deps: Deps, profile: str, profile_name: str) -> str:
    """Returns the profile that a call gives, as JSON or by its name; empty: it gives none. Raises VALIDATION_ERROR,
    NOT_DECIDED.
    """
    if not profile_name:
        return checked(profile) if profile else ""
    if profile:
        raise values.invalid("profile_name", "Expected a profile or its name")
    with deps.db.transaction() as tx:
        found = profiles.by_name(tx, values.code("profile_name", profile_name))
        if found is None or found.profile is None:
            raise unknown("profile_name")
        if not is_as_decided(tx, CSV_PROFILE, found.name, asdict(found)):
            raise not_decided("profile of CSV files")
    return found.profile


def checked(profile: str) -> str:
    """Raises VALIDATION_ERROR with each field of the profile that is wrong, as profile.day."""
    values.text("profile", profile, most=PROFILE_MAX_CHARACTERS)
    try:
        profile_from_json(profile)
    except ProfileRefused as refused:
        raise invalid_together([_fault(*each) for each in refused.faults.items()]) from None
    return profile


def unknown(field: str) -> Refused:
    return values.invalid(field, "No profile of CSV files has this name")


def _fault(place: str, sentence: str) -> Refused:
    field = f"profile.{place}" if place else "profile"
    return values.invalid(field, f"{sentence[:1].upper()}{sentence[1:]}")


def _put(tx: Session, act: str, profile: ProfileView) -> None:
    after = {name: getattr(profile, name) for name in CSV_PROFILE.fields}
    before = before_by_acts(tx, CSV_PROFILE, profile.name)
    profiles.put(tx, profile)
    acts.record(tx, act, f"csv-profile:{profile.name}", before=before, after=after)
