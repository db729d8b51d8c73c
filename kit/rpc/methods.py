"""The servicer of a contract, from its operations: a method calls the operation with the request's fields, by name.

A method whose call needs more than that is a function of the service's parts and the request, which returns the
response.
"""

from __future__ import annotations  # grpc's handlers are generic in their stubs only

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kit.base.proto import optional, optional_datetime

Call = Callable[[Any, Any], Message]
"""Answers the request, given the service's parts."""
Converters = Mapping[str, Callable[[Any], Any]]
"""By the full name of a message or an enumeration of the contract: converts a field of this type to a value."""
Read = Callable[[Message], Any]

_TIMESTAMP = "google.protobuf.Timestamp"


@dataclass(frozen=True)
class ByName:
    """A method that is its operation.

    answer  returns the fields of the response for the result of the operation
    fields  the request's fields whose names differ from the operation's parameters: parameter -> field
    """

    operation: Callable[..., Any]
    answer: Callable[[Any], Mapping[str, Any]]
    fields: dict[str, str]

    def call(self, method: MethodDescriptor, converters: Converters) -> Call:
        """Returns the call. Raises TypeError unless fields and parameters match."""
        fields = {name: name for name in method.input_type.fields_by_name} | self.fields
        fields = {name: field for name, field in fields.items() if name not in self.fields.values()}
        inspect.signature(self.operation).bind(None, **fields)
        reads = {
            name: _read(method.input_type.fields_by_name[field], converters) for name, field in fields.items()
        }
        response = GetMessageClass(method.output_type)

        def do(deps: Any, request: Message) -> Message:
            given = {name: read(request) for name, read in reads.items()}
            return response(**self.answer(self.operation(deps, **given)))

        return do


Methods = Mapping[str, ByName | Call]
"""The methods of a contract, by their names."""


def by_name(
    operation: Callable[..., Any],
    answer: Callable[[Any], Mapping[str, Any]] = lambda _result: {},
    **fields: str,
) -> ByName:
    """Returns a method that calls `operation(deps, **fields of the request)`."""
    return ByName(operation, answer, fields)


def serve(
    server: grpc.Server,
    contract: ServiceDescriptor,
    deps: Any,
    methods: Methods,
    converters: Converters | None = None,
) -> None:
    """Adds the contract to the server. Raises TypeError when a method is missing, or its fields are not its operation's
    parameters.
    """
    if wrong := set(contract.methods_by_name) ^ methods.keys():
        raise TypeError(f"{contract.name}: {sorted(wrong)}")
    handlers = {}
    for name, method in contract.methods_by_name.items():
        given = methods[name]
        call = given.call(method, converters or {}) if isinstance(given, ByName) else given
        handlers[name] = grpc.unary_unary_rpc_method_handler(
            partial(_answer, call, deps),
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(contract.full_name, handlers)])
    server.add_registered_method_handlers(contract.full_name, handlers)


def _answer(call: Call, deps: Any, request: Message, _context: grpc.ServicerContext) -> Message:
    return call(deps, request)


def _read(field: FieldDescriptor, converters: Converters) -> Read:
    """Returns the function that reads the field of a request; an `optional` field that is not set is None."""
    of = field.message_type or field.enum_type
    name = field.name
    if of is not None and of.full_name == _TIMESTAMP:
        return lambda request: optional_datetime(request, name)
    if of is not None and of.full_name in converters:
        convert = converters[of.full_name]
        return lambda request: convert(getattr(request, name))
    if field.enum_type is not None:
        raise TypeError(f"{field.full_name}: no converter of {field.enum_type.full_name}")
    if field.has_presence and field.message_type is None:
        return lambda request: optional(request, name)
    return lambda request: getattr(request, name)
