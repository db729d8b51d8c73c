"""The one place that builds a surface from its parts."""

from __future__ import annotations  # the asynchronous stubs exist for the type checker only

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from grpc_health.v1 import health_pb2_grpc

from console.config import ConsoleSettings, DashboardSettings
from console.strangers import PasskeyTurns, strangers_of_surface
from console.surfaces import Surface, surface_of
from console.ui.file_turns import FileTurns
from console.ui.pages import Link, Pages
from fiatgate.accounts.v1.accounts_pb2_grpc import OwnAccountServiceStub, PeopleServiceStub, SignInServiceStub
from fiatgate.approvals.v1.approvals_pb2_grpc import ApprovalsServiceStub
from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceStub
from fiatgate.bank.v1.bank_pb2_grpc import BankServiceStub
from fiatgate.bank.v1.feed_pb2_grpc import FeedServiceStub
from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceStub
from fiatgate.find.v1.find_pb2_grpc import FindServiceStub
from fiatgate.invoices.v1.invoices_pb2_grpc import (
    DealDeskServiceStub,
    InvoicesServiceStub,
    ReportsServiceStub,
)
from fiatgate.invoices.v1.lines_pb2_grpc import LinePaymentsServiceStub
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from fiatgate.parked.v1.parked_pb2_grpc import ParkedServiceStub
from fiatgate.queues.v1.queues_pb2_grpc import QueuesServiceStub
from fiatgate.status.v1.status_pb2_grpc import StatusServiceStub
from fiatgate.webhooks.v1.webhooks_pb2_grpc import WebhooksServiceStub
from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceStub
from fiatgate.withdrawals.v1.refunds_pb2_grpc import RefundsServiceStub
from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
from kit.rpc.client import aio_channel
from kit.web.walls.strangers import Strangers

if TYPE_CHECKING:
    from fiatgate.accounts.v1.accounts_pb2_grpc import (
        OwnAccountServiceAsyncStub,
        PeopleServiceAsyncStub,
        SignInServiceAsyncStub,
    )
    from fiatgate.approvals.v1.approvals_pb2_grpc import ApprovalsServiceAsyncStub
    from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub
    from fiatgate.bank.v1.bank_pb2_grpc import BankServiceAsyncStub
    from fiatgate.bank.v1.feed_pb2_grpc import FeedServiceAsyncStub
    from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceAsyncStub
    from fiatgate.find.v1.find_pb2_grpc import FindServiceAsyncStub
    from fiatgate.invoices.v1.invoices_pb2_grpc import (
        DealDeskServiceAsyncStub,
        InvoicesServiceAsyncStub,
        ReportsServiceAsyncStub,
    )
    from fiatgate.invoices.v1.lines_pb2_grpc import LinePaymentsServiceAsyncStub
    from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceAsyncStub
    from fiatgate.parked.v1.parked_pb2_grpc import ParkedServiceAsyncStub
    from fiatgate.queues.v1.queues_pb2_grpc import QueuesServiceAsyncStub
    from fiatgate.status.v1.status_pb2_grpc import StatusServiceAsyncStub
    from fiatgate.webhooks.v1.webhooks_pb2_grpc import WebhooksServiceAsyncStub
    from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceAsyncStub
    from fiatgate.withdrawals.v1.refunds_pb2_grpc import RefundsServiceAsyncStub
    from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceAsyncStub

WITH_APPROVALS: Final = ("withdrawals", "invoices", "catalog", "identity")
WITH_FIND: Final = ("invoices", "identity", "withdrawals", "webhooks", "catalog")
WITH_PARKED: Final = ("withdrawals", "webhooks")
WITH_QUEUES: Final = ("invoices", "withdrawals", "catalog", "webhooks", "identity", "bank")


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The collaborators of the resources: a stub for each service of the contracts.

    files   the turns of the files that this worker sends
    strangers  bounds cookies that are no session's, links that are no invitation's, and sign-ins where the person is
               not known
    passkeys  the turns of sign-ins by passkey
    own     the person's own factors and sessions
    deals   the desk's side of invoices: deals, cases, requisites
    health  the standard health service of the services without which no page works

    Contracts that several services serve are mappings by the service's name. A dashboard has all stubs too; what it may
    call, the services decide by its certificate.
    """

    settings: ConsoleSettings
    surface: Surface
    pages: Pages
    files: FileTurns
    strangers: Strangers
    passkeys: PasskeyTurns
    signin: SignInServiceAsyncStub
    own: OwnAccountServiceAsyncStub
    people: PeopleServiceAsyncStub
    catalog: CatalogServiceAsyncStub
    invoices: InvoicesServiceAsyncStub
    deals: DealDeskServiceAsyncStub
    reports: ReportsServiceAsyncStub
    merchants: MerchantsServiceAsyncStub
    withdrawals: WithdrawalsServiceAsyncStub
    corrections: CorrectionsServiceAsyncStub
    refunds: RefundsServiceAsyncStub
    webhooks: WebhooksServiceAsyncStub
    bank: BankServiceAsyncStub
    feed: FeedServiceAsyncStub
    line_payments: LinePaymentsServiceAsyncStub
    audit: Mapping[str, AuditServiceAsyncStub]
    approvals: Mapping[str, ApprovalsServiceAsyncStub]
    find: Mapping[str, FindServiceAsyncStub]
    parked: Mapping[str, ParkedServiceAsyncStub]
    queues: Mapping[str, QueuesServiceAsyncStub]
    status: Mapping[str, StatusServiceAsyncStub]
    health: Mapping[str, Any]


def addresses(settings: ConsoleSettings) -> Mapping[str, str]:
    """Returns the address of each service, by name."""
    return {
        "identity": settings.identity_address,
        "catalog": settings.catalog_address,
        "invoices": settings.invoices_address,
        "withdrawals": settings.withdrawals_address,
        "webhooks": settings.webhooks_address,
        "bank": settings.bank_address,
    }


@asynccontextmanager
async def wired(settings: ConsoleSettings, navigation: Sequence[Link]) -> AsyncIterator[Deps]:
    """Builds the collaborators of one worker process inside its running loop: channels don't survive a fork."""
    async with AsyncExitStack() as opened:
        channels = {
            name: await opened.enter_async_context(
                aio_channel(address, name=name, identity=settings.identity)
            )
            for name, address in addresses(settings).items()
        }
        surface = surface_of(settings)
        identity = channels["identity"]
        yield Deps(
            settings=settings,
            surface=surface,
            pages=Pages(
                surface,
                origin=settings.url,
                navigation=navigation,
                is_test=settings.is_test,
                sandbox_url=settings.sandbox_url if isinstance(settings, DashboardSettings) else "",
            ),
            files=FileTurns(),
            strangers=strangers_of_surface(),
            passkeys=PasskeyTurns(),
            signin=SignInServiceStub(identity),
            own=OwnAccountServiceStub(identity),
            people=PeopleServiceStub(identity),
            catalog=CatalogServiceStub(channels["catalog"]),
            invoices=InvoicesServiceStub(channels["invoices"]),
            deals=DealDeskServiceStub(channels["invoices"]),
            reports=ReportsServiceStub(channels["invoices"]),
            merchants=MerchantsServiceStub(identity),
            withdrawals=WithdrawalsServiceStub(channels["withdrawals"]),
            corrections=CorrectionsServiceStub(channels["withdrawals"]),
            refunds=RefundsServiceStub(channels["withdrawals"]),
            webhooks=WebhooksServiceStub(channels["webhooks"]),
            bank=BankServiceStub(channels["bank"]),
            feed=FeedServiceStub(channels["bank"]),
            line_payments=LinePaymentsServiceStub(channels["invoices"]),
            audit={name: AuditServiceStub(channel) for name, channel in channels.items()},
            approvals={name: ApprovalsServiceStub(channels[name]) for name in WITH_APPROVALS},
            find={name: FindServiceStub(channels[name]) for name in WITH_FIND},
            parked={name: ParkedServiceStub(channels[name]) for name in WITH_PARKED},
            queues={name: QueuesServiceStub(channels[name]) for name in WITH_QUEUES},
            status={name: StatusServiceStub(channel) for name, channel in channels.items()},
            health={"identity": health_pb2_grpc.HealthStub(identity)},
        )
