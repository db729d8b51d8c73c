"""BankService: the methods."""

from typing import Any, Final

from kit.base.proto import timestamp_from
from kit.rpc.methods import Methods, by_name
from services.bank.operations import days, importing, lines, profiles
from services.bank.operations.importing import ImportStory
from services.bank.rpc.converters import (
    account_to_message,
    day_to_message,
    import_to_message,
    line_to_message,
    preview_to_fields,
    profile_to_message,
)


def _import(story: ImportStory) -> dict[str, Any]:
    return {"file": import_to_message(story)}


METHODS: Final[Methods] = {
    "ImportFile": by_name(importing.import_file, _import),
    "GetPreview": by_name(importing.get_preview, preview_to_fields),
    "ListCsvProfiles": by_name(
        profiles.list_csv_profiles, lambda found: {"profiles": map(profile_to_message, found)}
    ),
    "SaveCsvProfile": by_name(
        profiles.save_csv_profile, lambda saved: {"profile": profile_to_message(saved)}
    ),
    "DeleteCsvProfile": by_name(profiles.delete_csv_profile),
    "GetImport": by_name(importing.get_import, _import),
    "ListImports": by_name(importing.list_imports, lambda found: {"imports": map(import_to_message, found)}),
    "ListLines": by_name(lines.list_lines, lambda found: {"lines": map(line_to_message, found)}),
    "GetLine": by_name(lines.get_line, lambda line: {"line": line_to_message(line)}),
    "ListDays": by_name(days.list_days, lambda found: {"days": map(day_to_message, found)}),
    "ListAccounts": by_name(days.list_accounts, lambda found: {"accounts": map(account_to_message, found)}),
    "ClaimLine": by_name(
        lines.claim_line,
        lambda line: {"line": line_to_message(line), "claimed_at": timestamp_from(line.tried_at)},
    ),
    "UseLine": by_name(lines.use_line, lambda at: {"claimed_at": timestamp_from(at)}),
    "ReleaseLine": by_name(lines.release_line),
    "IgnoreLine": by_name(lines.ignore_line),
    "RestoreLine": by_name(lines.restore_line),
    "LinkRefund": by_name(lines.link_refund),
    "FollowPayments": by_name(lines.follow_payments, lambda next: {"replace_after": next}),
}
