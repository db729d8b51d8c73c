"""Reads the options of a service's methods from the protos, and builds contracts that only a test has."""

import importlib
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodOptions

from fiatgate.rpc.v1 import access_pb2
from fiatgate.rpc.v1.access_pb2 import Access
from kit.base.services import PACKAGES
from kit.rpc.permissions import Permission, permission_of

ROOT: Final = Path(__file__).resolve().parents[2]
SHARED: Final = ("approvals", "books", "find", "parked", "queues")
"""Contracts whose servicers several services register."""
BY_PROCESS: Final = ("audit", "status")
"""The contracts that the process registers, alike for all services."""
SERVICE_OF: Final = {each: service for service, packages in PACKAGES.items() for each in packages}


def modules_of(package: str) -> list[Any]:
    """The generated modules of a package of protos."""
    files = sorted((ROOT / "fiatgate" / package / "v1").glob("*_pb2.py"))
    return [importlib.import_module(f"fiatgate.{package}.v1.{each.stem}") for each in files]


def rpcs_of(service: str) -> dict[str, str]:
    """Method name -> `Service/Method`, of all that a service of ours offers."""
    offered = chain.from_iterable(
        module.DESCRIPTOR.services_by_name.values()
        for each in PACKAGES.get(service, (service,))
        for module in modules_of(each)
    )
    names = [(method.name, f"{each.name}/{method.name}") for each in offered for method in each.methods]
    assert len(dict(names)) == len(names), "two of one name: this test can't tell them apart"
    return dict(names)


def serves(service: str, shared: str) -> bool:
    """Whether the service registers a contract that several services have."""
    folder = ROOT / "services" / service
    return any(
        f"{shared}.add_to" in each.read_text() for each in (*folder.glob("rpc.py"), *folder.glob("rpc/*.py"))
    )


def permissions_of(service: str) -> Mapping[str, Permission]:
    """The row of each method that the service serves, by `Service/Method`."""
    contracts = (
        *PACKAGES.get(service, (service,)),
        *BY_PROCESS,
        *(each for each in SHARED if serves(service, each)),
    )
    methods = {method: contract for contract in contracts for method in rpcs_of(contract).values()}
    return {
        method: permission_of(f"/fiatgate.{contract}.v1.{method}", service)
        for method, contract in methods.items()
    }


def methods_by_caller(service: str) -> dict[str, frozenset[str]]:
    """The methods that the protos open to each process, without those of the command line, which may call all."""
    found: dict[str, set[str]] = {}
    for method, row in permissions_of(service).items():
        assert "cli" in row.callers
        for caller in row.callers - {"cli"}:
            found.setdefault(caller, set()).add(method)
    return {caller: frozenset(methods) for caller, methods in found.items()}


def declare(name: str, methods: Mapping[str, Access | None]) -> None:
    """Adds the service `package.Service` with these methods, once in a process; None is a method without an entry."""
    package, _, service = name.rpartition(".")
    file = FileDescriptorProto(name=f"tests/{name}.proto", package=package)
    file.message_type.add(name=f"{service}Message")
    declared = file.service.add(name=service)
    for method, access in methods.items():
        options = MethodOptions()
        if access is not None:
            options.Extensions[access_pb2.access].append(access)
        message = f".{package}.{service}Message"
        declared.method.add(name=method, input_type=message, output_type=message, options=options)
    descriptor_pool.Default().Add(file)
