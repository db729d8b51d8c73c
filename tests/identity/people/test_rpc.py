"""The doors of the service: its callers, and the actors of its calls, over a real socket."""

from fiatgate.accounts.v1 import accounts_pb2
from kit.base.services import SERVICES
from tests.support.contracts import methods_by_caller, rpcs_of


def methods() -> set[str]:
    services = accounts_pb2.DESCRIPTOR.services_by_name.values()
    return {f"{each.name}/{method.name}" for each in services for method in each.methods}


def test_the_services_reach_its_keys_and_the_console_all_of_people() -> None:
    keys = frozenset({"ActorKeysService/ListActorKeys", "HeadsService/KeepHead"})
    notices = frozenset({"NoticesService/TellOwners"})
    of_services = ("ActorKeysService/", "HeadsService/", "NoticesService/")
    of_people = {each for each in methods() if not each.startswith(of_services)}
    others = {each for each in rpcs_of("identity").values() if each.startswith("MerchantsService/")}
    services = [each for each in SERVICES if each != "identity"]
    of_console = frozenset({*of_people, "AuditService/ListActs"})
    permitted = {
        caller: found
        for caller, methods in methods_by_caller("identity").items()
        if (found := methods - others)
    }
    of_desk = permitted["console-desk"]
    assert of_console <= of_desk
    shared = ("ApprovalsService/", "FindService/", "QueuesService/", "StatusService/")
    assert all(each.startswith(shared) for each in of_desk - of_console)
    expected = {**dict.fromkeys(services, keys), "console-dashboard": of_console}
    expected["withdrawals"] = keys | notices
    assert {**expected, "console-desk": of_desk} == permitted
