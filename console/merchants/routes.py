"""The addresses of merchants, owners and categories, and their entries of the navigation."""

from typing import Final

from console.merchants.categories import CategoriesPage
from console.merchants.creating import NewMerchantPage
from console.merchants.list import MerchantsPage
from console.merchants.logo import MerchantLogo
from console.merchants.members import InviteMemberPage, MemberPage, MembersPage
from console.merchants.merchant import MerchantPage
from console.merchants.owners import OwnerPage
from console.merchants.view import ViewPage
from console.page import App
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link("/merchants", "Merchants", "settings, keys, members, state", reads(*READERS), group="setup"),
    Link(
        "/categories", "Categories", "lines of business and their commission", reads(*READERS), group="setup"
    ),
    Link("/owners", "Owners", "all merchants of one owner", reads(*READERS), group=""),
    Link("/merchants/members", "Members", "the people of a merchant", reads(), group=""),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    MerchantsPage(deps).add_to(app, "/merchants")
    app.add_route("/merchants/new", NewMerchantPage(deps))
    merchant = MerchantPage(deps)
    app.add_route("/merchants/{merchant_id}", merchant)
    for word in ("settings", "activate", "ban", "unban"):
        app.add_route(f"/merchants/{{merchant_id}}/{word}", merchant, suffix=word)
    MerchantLogo(deps).add_logo_to(app, "/merchants/{merchant_id}/logo", "/merchants/logos")
    ViewPage(deps).add_to(app, "/merchants/{merchant_id}/view")
    _add_members(app, deps)
    owner = OwnerPage(deps)
    app.add_route("/owners/{owner_id}", owner)
    app.add_route("/owners/{owner_id}/block", owner, suffix="block")
    app.add_route("/owners/{owner_id}/unblock", owner, suffix="unblock")
    CategoriesPage(deps).add_to(app, "/categories")


def _add_members(app: App, deps: Deps) -> None:
    members, member = MembersPage(deps), MemberPage(deps)
    members.add_to(app, "/merchants/{merchant_id}/people")
    app.add_route(
        "/merchants/{merchant_id}/people/invitations/{invitation_id}/withdraw", members, suffix="withdraw"
    )
    app.add_route("/merchants/{merchant_id}/people/invite", InviteMemberPage(deps))
    app.add_route("/merchants/{merchant_id}/people/{person_id}", member)
    for word in ("roles", "remove", "recover"):
        app.add_route(f"/merchants/{{merchant_id}}/people/{{person_id}}/{word}", member, suffix=word)
