"""`python tools/protolint.py`: the house rules of the contracts, checked on the compiled descriptors.

Prints each breach and exits 1. It needs only Python and no other tool.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent.parent / "protos"
_WELL_KNOWN = Path(protoc.__file__).parent / "_proto"
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PASCAL = re.compile(r"([A-Z][a-z0-9]*)+")
_INEXACT = (FieldDescriptorProto.TYPE_FLOAT, FieldDescriptorProto.TYPE_DOUBLE)
_MEASURES = ("fiatgate.status.v1",)  # gauges: neither money nor rates
# In the paths of source comments: FileDescriptorProto.service, and ServiceDescriptorProto.method.
_SERVICE_FIELD = 6
_METHOD_FIELD = 2


def breaches(files: FileDescriptorSet) -> Iterator[str]:
    """Yields one line for each broken rule."""
    used: dict[str, str] = {}
    for file in files.file:
        yield from _file_breaches(file)
        for message in file.message_type:
            yield from _message_breaches(file.package, message)
        for enum in file.enum_type:
            yield from _enum_breaches(file.package, enum)
        for index, service in enumerate(file.service):
            yield from _comment_breaches(file, index)
            yield from _service_breaches(file.package, service, used)


def _file_breaches(file: FileDescriptorProto) -> Iterator[str]:
    folder = str(Path(file.name).parent)
    if file.package.replace(".", "/") != folder:
        yield f"{file.name}: package {file.package} is not its folder, so neither its Python path"
    if not re.search(r"\.v\d+$", file.package):
        yield f"{file.name}: package {file.package} has no version"


def _message_breaches(scope: str, message: DescriptorProto) -> Iterator[str]:
    name = f"{scope}.{message.name}"
    if not _PASCAL.fullmatch(message.name):
        yield f"{name}: messages are PascalCase"
    for field in message.field:
        if not _SNAKE.fullmatch(field.name):
            yield f"{name}.{field.name}: fields are snake_case"
        if field.type in _INEXACT and scope not in _MEASURES:
            yield f"{name}.{field.name}: binary fractions lose cents; money and rates are decimal strings"
        if field.name.endswith("_at") and field.type_name != ".google.protobuf.Timestamp":
            yield f"{name}.{field.name}: a moment is a google.protobuf.Timestamp"
    for enum in message.enum_type:
        yield from _enum_breaches(name, enum)
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _message_breaches(name, nested)


def _enum_breaches(scope: str, enum: EnumDescriptorProto) -> Iterator[str]:
    name = f"{scope}.{enum.name}"
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper()
    if enum.value[0].name not in (f"{prefix}_UNSPECIFIED", "UNSPECIFIED"):
        yield f"{name}: zero, which an absent field reads as, must be {prefix}_UNSPECIFIED"
    # The reasons equal the public codes, so only their enum has no prefix.
    if enum.name != "ErrorReason":
        for value in enum.value:
            if not value.name.startswith(prefix):
                yield f"{name}.{value.name}: enum values share one scope in C++; prefix them with {prefix}_"


def _service_breaches(scope: str, service: ServiceDescriptorProto, used: dict[str, str]) -> Iterator[str]:
    name = f"{scope}.{service.name}"
    if not service.name.endswith("Service"):
        yield f"{name}: services end with Service"
    for method in service.method:
        if method.name.startswith("Update"):
            yield f"{name}.{method.name}: a change of state is a verb (MarkPaid), not an Update"
        for kind, type_name in (("Request", method.input_type), ("Response", method.output_type)):
            if type_name != f".{scope}.{method.name}{kind}":
                yield f"{name}.{method.name}: its {kind.lower()} is {method.name}{kind}, to grow on its own"
            if type_name in used:
                yield f"{name}.{method.name}: {type_name} is {used[type_name]}'s already"
            used[type_name] = f"{name}.{method.name}"


def _comment_breaches(file: FileDescriptorProto, index: int) -> Iterator[str]:
    service = file.service[index]
    name, place = f"{file.package}.{service.name}", [_SERVICE_FIELD, index]
    if not _has_comment(file, place):
        yield f"{name}: a service has a comment: its purpose"
    for number, method in enumerate(service.method):
        if not _has_comment(file, [*place, _METHOD_FIELD, number]):
            yield f"{name}.{method.name}: a method has a comment: its effect, and its reasons"


def _has_comment(file: FileDescriptorProto, path: list[int]) -> bool:
    return any(
        list(location.path) == path and location.leading_comments.strip()
        for location in file.source_code_info.location
    )


def compile_protos(folder: Path) -> FileDescriptorSet:
    """Returns the descriptors of all protos below `folder`, with comments; SystemExit when protoc refuses one."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "descriptors"
        sources = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))
        arguments = [
            f"-I{folder}",
            f"-I{_WELL_KNOWN}",
            f"--descriptor_set_out={out}",
            "--include_source_info",
        ]
        if protoc.main(["protoc", *arguments, *sources]) != 0:
            sys.exit("protoc refused the protos; its message stands above")
        return FileDescriptorSet.FromString(out.read_bytes())


def main() -> None:
    found = list(breaches(compile_protos(PROTOS)))
    sys.exit("\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
