"""Commands by declaration: a command is the request of its RPC, the options that fill the request, and a function that
makes the call and prints the outcome.

    @command(app, "set", "shops --commission 5", pb.SetCategoryRequest,
             argument("code", "CODE"), percent("commission", required=True))
    def set_one(request: pb.SetCategoryRequest) -> None:
        "Create a category or change its commission."

An option has the type of its field. Parameters of the function beside `request` are options of their own, as Typer
reads them; they follow the others, unless their name stands among these. Each command takes --json; --all and --csv are
declared as `modes`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial, wraps
from typing import Annotated, Any, Final

import typer
from google.protobuf.message import Message

from cli import output
from cli.moments import moment
from kit.base.money import PER_CENT, fraction_of, parse_fraction
from kit.base.proto import timestamp_from

# The largest numbers that fields of these types hold: a message raises ValueError for a larger one.
INT32_MOST: Final = 2**31 - 1
INT64_MOST: Final = 2**63 - 1

_REQUIRED: Final = inspect.Parameter.empty
_TIME: Final = "google.protobuf.Timestamp"
_MODES: Final = {
    "csv": typer.Option("--csv", help="Print CSV with a heading line: all rows, whole ids."),
    "everything": typer.Option("--all", help="Print every field, not only the sentence."),
    "json": typer.Option("--json", help="Print JSON: one object, or a list."),
}


@dataclass(frozen=True)
class Filled:
    """An option or an argument that fills a field of the request."""

    field: str
    make: Callable[..., Any]
    names: tuple[str, ...]
    settings: dict[str, Any]
    default: Any

    def parameter(self, request: type[Message] | None) -> inspect.Parameter:
        assert request is not None
        field = request.DESCRIPTOR.fields_by_name[self.field]
        kind, checks = (str, {}) if "parser" in self.settings else _type_of(field)
        value = kind | None if self.default is None else kind
        annotation = Annotated[value, self.make(*self.names, **checks | self.settings)]  # type: ignore[valid-type]
        return _keyword(self.field, annotation, self.default)


def option(
    field: str,
    metavar: str | None = None,
    help: str | None = None,
    *names: str,
    default: Any = None,
    required: bool = False,
    **settings: Any,
) -> Filled:
    """Returns the option that fills this field; its name is the field's, or `names`."""
    given = {"metavar": metavar, "help": help} | settings
    flag = names or (f"--{field.replace('_', '-')}",)
    return Filled(field, typer.Option, flag, given, _REQUIRED if required else default)


def percent(field: str, help: str | None = None, **settings: Any) -> Filled:
    """Returns the option that takes per cent, as pages do, and fills a field that holds the fraction."""
    return option(field, "PERCENT", help, parser=_fraction, **settings)


def argument(
    field: str, metavar: str | None, help: str | None = None, *, default: Any = _REQUIRED, **settings: Any
) -> Filled:
    return Filled(field, typer.Argument, (), {"metavar": metavar, "help": help} | settings, default)


SINCE_HELP: Final = "From then on: 24h, 2026-11-22, 2026-11-22T14:30."
UNTIL_HELP: Final = "Before then; written as --since."


def period(since: str = "created_from", until: str = "created_before") -> tuple[Filled, Filled]:
    """Returns the options for a time from which on, and one before which."""
    return option(since, "TIME", SINCE_HELP, "--since"), option(until, "TIME", UNTIL_HELP, "--until")


def group(word: str, help: str) -> typer.Typer:
    return typer.Typer(name=word, help=help, no_args_is_help=True)


def shaped(
    request: type[Message] | None, *fields: Filled | str, modes: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns the decorator that gives a function the options of the fields, and --json. `modes`: "all", "csv"."""
    offered = [*({"all": "everything"}.get(each, each) for each in modes.split()), "json"]
    filled = [each.field for each in fields if isinstance(each, Filled)]

    def shape(function: Callable[..., None]) -> Callable[..., None]:
        own = {
            name: each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, each in inspect.signature(function).parameters.items()
            if name != "request"
        }

        @wraps(function)
        def run(**given: Any) -> None:
            output.mode.set(**{each: given.pop(each) for each in offered})
            if request:
                given["request"] = request(**{each: _value(given.pop(each)) for each in filled})
            function(**given)

        parameters = [
            *(own.pop(each) if isinstance(each, str) else each.parameter(request) for each in fields),
            *own.values(),
            *(_keyword(each, Annotated[bool, _MODES[each]], default=False) for each in offered),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
        return run

    return shape


def command(
    app: typer.Typer,
    word: str,
    example: str = "",
    request: type[Message] | None = None,
    *fields: Filled | str,
    modes: str = "",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns the decorator that makes a function the command `word` of the group; see the top of this file."""
    epilog = " ".join(filter(None, ("Example: fiatgate", str(app.info.name), word, example)))
    shape = shaped(request, *fields, modes=modes)
    return lambda function: app.command(word, epilog=epilog)(shape(function))


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _fraction(typed: str) -> str:
    fraction = fraction_of(typed)
    try:
        parse_fraction(fraction)
    except ValueError:
        raise typer.BadParameter(PER_CENT) from None
    return fraction


def _value(given: Any) -> Any:
    return timestamp_from(given) if isinstance(given, datetime) else given


def _type_of(field: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the type of the field, and what the option must check so that the field can hold the value."""
    if field.is_repeated:
        return list[str], {}
    if field.message_type is not None and field.message_type.full_name == _TIME:
        return datetime, {"parser": moment}
    if field.enum_type is not None:
        return str, {"parser": partial(output.enum_number, field.enum_type)}
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64):
        is_short = field.cpp_type == field.CPPTYPE_INT32
        return int, {"min": 0, "max": INT32_MOST if is_short else INT64_MOST}
    return {field.CPPTYPE_BOOL: bool}.get(field.cpp_type, str), {}
