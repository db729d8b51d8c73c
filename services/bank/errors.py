"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from kit.rpc.errors import Refused, invalid, not_found, precondition


def file_refused(problem: str) -> Refused:
    return invalid("BANK_FILE_REFUSED", problem)


def import_not_found() -> Refused:
    return not_found("BANK_IMPORT_NOT_FOUND", "No such import")


def line_not_found() -> Refused:
    return not_found("BANK_LINE_NOT_FOUND", "No such bank line")


def connector_not_found() -> Refused:
    return not_found("CONNECTOR_NOT_FOUND", "No such connector")


def line_has_paid() -> Refused:
    return precondition("BANK_LINE_CONFLICT", "The line has paid a deal")


def line_not_ignored() -> Refused:
    return precondition("BANK_LINE_CONFLICT", "The line is not ignored")
