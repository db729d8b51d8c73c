"""Values to messages, and back."""

from datetime import date
from decimal import Decimal
from typing import Any, Final

from fiatgate.bank.v1 import bank_pb2 as pb
from kit.base.money import fiat_text
from kit.base.proto import timestamp_from
from kit.rpc import values
from kit.rpc.methods import Converters
from services.bank.domain.proposals import ImportState, LineState, Tier
from services.bank.operations.importing import ImportStory, Preview
from services.bank.store.days import Account, Day
from services.bank.store.views import LineView, MatchView, ProfileView, StatementView

_IMPORT_STATES: Final = {each: pb.ImportState.Value(f"IMPORT_STATE_{each.name}") for each in ImportState}
_LINE_STATES: Final = {each: pb.LineState.Value(f"LINE_STATE_{each.name}") for each in LineState}
_TIERS: Final = {each: pb.Tier.Value(f"TIER_{each.name}") for each in Tier}


def import_to_message(story: ImportStory) -> pb.Import:
    file = story.file
    return pb.Import(
        import_id=str(file.id),
        file_name=file.file_name,
        format=file.format or "",
        state=_IMPORT_STATES[file.state],
        problem=file.problem or "",
        lines=file.lines,
        new_lines=file.new_lines,
        statements=map(_statement_to_message, story.statements),
        imported_at=timestamp_from(file.imported_at),
    )


def _statement_to_message(statement: StatementView) -> pb.Statement:
    return pb.Statement(
        account=statement.account,
        currency_code=statement.currency_code,
        number=statement.number,
        opening=_fiat(statement.opening),
        closing=_fiat(statement.closing),
        opened_on=_day(statement.opened_on),
        closed_on=_day(statement.closed_on),
        has_gap=statement.has_gap,
    )


def line_to_message(line: LineView) -> pb.Line:
    return pb.Line(
        line_id=str(line.id),
        import_id=str(line.import_id or ""),
        account=line.account,
        amount=fiat_text(line.amount),
        currency_code=line.currency_code,
        left=fiat_text(line.left),
        booked_on=_day(line.booked_on),
        valued_on=_day(line.valued_on),
        counterparty_name=line.counterparty_name,
        counterparty_account=line.counterparty_account,
        text=line.text,
        references=[text for text in line.reference_texts.split("\n") if text],
        state=_LINE_STATES[line.state],
        tier=_TIERS[line.tier] if line.tier else pb.TIER_UNSPECIFIED,
        deal_id=str(line.deal_id or ""),
        invoice_id=str(line.invoice_id or ""),
        deal_amount=_fiat(line.deal_amount),
        reason=line.reason or "",
        matches=map(_match_to_message, line.matches),
        created_at=timestamp_from(line.created_at),
        connector_id=str(line.connector_id or ""),
        payable=line.is_payable,
        held=line.held or "",
        refund_id=str(line.refund_id or ""),
        used_for=line.used_for or "",
    )


def _match_to_message(match: MatchView) -> pb.LineMatch:
    return pb.LineMatch(
        deal_id=str(match.deal_id),
        invoice_id=str(match.invoice_id),
        amount=fiat_text(match.amount),
        paid_at=timestamp_from(match.paid_at),
    )


def preview_to_fields(preview: Preview) -> dict[str, Any]:
    return {
        "rows": (pb.CsvRow(cells=cells) for cells in preview.rows),
        "encoding": preview.encoding,
        "delimiter": preview.delimiter,
        "lines": map(line_to_message, preview.lines),
        "problem": preview.problem,
    }


def profile_to_message(profile: ProfileView) -> pb.CsvProfile:
    return pb.CsvProfile(
        name=profile.name,
        profile=profile.profile or "",
        actor=profile.actor,
        changed_at=timestamp_from(profile.changed_at),
    )


def day_to_message(day: Day) -> pb.Day:
    return pb.Day(
        key=day.key,
        day=day.day.isoformat(),
        account=day.account,
        currency_code=day.currency_code,
        opening=_fiat(day.opening),
        matched=fiat_text(day.matched),
        proposed=fiat_text(day.proposed),
        unmatched=fiat_text(day.unmatched),
        ignored=fiat_text(day.ignored),
        refunds=fiat_text(day.refunds),
        debits=fiat_text(day.debits),
        reversed=fiat_text(day.reversed),
        closing=_fiat(day.closing),
        difference=_fiat(day.difference),
        lines=day.lines,
        open_lines=day.open_lines,
    )


def account_to_message(account: Account) -> pb.Account:
    return pb.Account(account=account.account, first_day=account.first_day.isoformat())


def line_state_from_message(number: pb.LineState.ValueType) -> LineState | None:
    """Returns the state; None for UNSPECIFIED."""
    found = {value: state for state, value in _LINE_STATES.items()}
    if number and number not in found:
        raise values.invalid("state", "Expected a state of lines")
    return found.get(number)


def tier_from_message(number: pb.Tier.ValueType) -> Tier | None:
    """Returns the tier; None for UNSPECIFIED."""
    found = {value: tier for tier, value in _TIERS.items()}
    if number and number not in found:
        raise values.invalid("tier", "Expected a tier of proposals")
    return found.get(number)


def _day(day: date | None) -> str:
    return "" if day is None else day.isoformat()


def _fiat(amount: Decimal | None) -> str:
    return "" if amount is None else fiat_text(amount)


FROM_MESSAGE: Final[Converters] = {
    "fiatgate.bank.v1.LineState": line_state_from_message,
    "fiatgate.bank.v1.Tier": tier_from_message,
}
