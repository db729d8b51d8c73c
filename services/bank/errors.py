"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from kit.rpc.errors import Refused, denied, invalid, not_found, precondition


def file_refused(problem: str) -> Refused:
    return invalid("BANK_FILE_REFUSED", problem)


def import_not_found() -> Refused:
    return not_found("BANK_IMPORT_NOT_FOUND", "No such import")


def line_not_found() -> Refused:
    return not_found("BANK_LINE_NOT_FOUND", "No such bank line")


def key_invalid() -> Refused:
    return denied("API_KEY_INVALID", "The connector's key is invalid or revoked")


def account_not_allowed(account: str, currency: str) -> Refused:
    message = "The connector's key is not for this account; none of the lines was taken"
    return denied("FEED_ACCOUNT_NOT_ALLOWED", message, account=account, currency=currency)


def connector_not_found() -> Refused:
    return not_found("CONNECTOR_NOT_FOUND", "No such connector")


def line_conflict(why: str) -> Refused:
    return precondition("BANK_LINE_CONFLICT", f"The line {why}")
