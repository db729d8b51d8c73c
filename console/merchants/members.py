"""The people of a merchant: members with their roles, invitations, and the link for one who has lost all factors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any, ClassVar, Final

import falcon.asgi

from console.exchange import Request
from console.file_page import Lines
from console.merchants.merchant import OneMerchant
from console.page import chosen, leave_for
from console.surfaces import DASHBOARD
from console.ui.pages import only_for
from console.ui.values import iso
from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.errors import Refused, invalid, not_found

MEMBERS_PER_PAGE: Final = 100
MEMBERS_PER_CALL: Final = 200
MENDABLE: Final = frozenset(
    {"VALIDATION_ERROR", "LAST_OWNER", "INVITATIONS_LIMITED", "APPROVAL_REQUIRED", "APPROVAL_STATE_CONFLICT"}
)
ROLES: Final = DASHBOARD.roles


class _Members(OneMerchant):
    """The base of these pages, which only administrators and auditors read."""

    link: ClassVar[str] = "/merchants/members"


class MembersPage(_Members):
    """/merchants/{merchant_id}/people?after=…: by e-mail address, with the open invitations on the first page."""

    csv_name = "members"
    columns = ("email", "name", "roles", "state", "created_at", "last_seen_at", "invited_until")

    async def on_get(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        merchant = await self.merchant(merchant_id)
        after = req.get_param("after") or ""
        request = pb.ListPeopleRequest(merchant_id=merchant_id, after_email=after, limit=MEMBERS_PER_PAGE + 1)
        people = (await self.deps.people.ListPeople(request)).people
        invitations: Any = ()
        if not after:
            wanted = pb.ListInvitationsRequest(merchant_id=merchant_id)
            invitations = (await self.deps.people.ListInvitations(wanted)).invitations
        shown = people[:MEMBERS_PER_PAGE]
        self.show_merchant(
            req,
            resp,
            "merchant-people",
            merchant,
            people=[(each, roles_at(merchant_id, each)) for each in shown],
            invitations=[(each, roles_at(merchant_id, each)) for each in invitations],
            after=after,
            next=shown[-1].email if len(people) > len(shown) else "",
            csv=self.file(req),
        )

    on_head = on_get

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        """Yields the members, then the open invitations."""
        merchant_id = params["merchant_id"]
        request = pb.ListPeopleRequest(merchant_id=merchant_id, limit=MEMBERS_PER_CALL)
        while people := (await self.deps.people.ListPeople(request)).people:
            yield [_cells(merchant_id, each) for each in people]
            request.after_email = people[-1].email
        invitations = await self.deps.people.ListInvitations(
            pb.ListInvitationsRequest(merchant_id=merchant_id)
        )
        yield [_cells_of_invitation(merchant_id, each) for each in invitations.invitations]

    async def on_post_withdraw(
        self, req: Request, resp: falcon.asgi.Response, merchant_id: str, invitation_id: str
    ) -> None:
        await self.form(req)
        request = pb.WithdrawInvitationRequest(invitation_id=invitation_id)
        change = self.deps.people.WithdrawInvitation(request)
        path = f"/merchants/{merchant_id}/people"
        mendable = ("INVITATION_NOT_FOUND",)
        await self.leave_after(resp, change, path, notice="invitation-withdrawn", mendable=mendable)


class MemberPage(_Members):
    """/merchants/{merchant_id}/people/{person_id}: the roles at this merchant."""

    async def on_get(
        self, req: Request, resp: falcon.asgi.Response, merchant_id: str, person_id: str
    ) -> None:
        await self._show(req, resp, merchant_id, person_id)

    on_head = on_get

    async def on_post_roles(
        self, req: Request, resp: falcon.asgi.Response, merchant_id: str, person_id: str
    ) -> None:
        form = await self.form(req)
        roles = chosen(form, ROLES, prefix="role")
        try:
            if not roles:
                raise invalid("VALIDATION_ERROR", "choose at least one, or remove the person", field="roles")
            await self._set_roles(merchant_id, person_id, roles)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, merchant_id, person_id, refused=refused, ticked=roles)
        else:
            leave_for(resp, f"/merchants/{merchant_id}/people/{person_id}", notice="roles-set")

    async def on_post_remove(
        self, req: Request, resp: falcon.asgi.Response, merchant_id: str, person_id: str
    ) -> None:
        await self.form(req)
        try:
            await self._set_roles(merchant_id, person_id, ())
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, merchant_id, person_id, refused=refused)
        else:
            leave_for(resp, f"/merchants/{merchant_id}/people", notice="member-removed")

    async def on_post_recover(
        self, req: Request, resp: falcon.asgi.Response, merchant_id: str, person_id: str
    ) -> None:
        """Makes a link for a member who has lost all factors; it is shown once when there is no mail server."""
        await self.form(req)
        request = pb.RecoverPersonRequest(person_id=person_id, merchant_id=merchant_id)
        try:
            made = await self.deps.people.RecoverPerson(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, merchant_id, person_id, refused=refused)
            return
        if made.link:
            back = f"/merchants/{merchant_id}/people"
            await self.show_link(req, resp, made.link, made.invitation, back=back)
        else:
            leave_for(resp, f"/merchants/{merchant_id}/people/{person_id}", notice="recovery-sent")

    async def _set_roles(self, merchant_id: str, person_id: str, roles: Collection[str]) -> None:
        request = pb.SetRolesRequest(person_id=person_id, roles=roles, merchant_id=merchant_id)
        await self.deps.people.SetRoles(request)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        merchant_id: str,
        person_id: str,
        *,
        refused: Refused | None = None,
        ticked: list[str] | None = None,
    ) -> None:
        merchant = await self.merchant(merchant_id)
        person = (await self.deps.people.GetPerson(pb.GetPersonRequest(person=person_id))).person
        roles = roles_at(merchant_id, person)
        if not roles:
            raise not_found("PERSON_NOT_FOUND", "The person is no member of the merchant")
        self.show_merchant(
            req,
            resp,
            "merchant-person",
            merchant,
            refused=refused,
            person=person,
            all_roles=ROLES,
            ticked=roles if ticked is None else ticked,
        )


class InviteMemberPage(_Members):
    """/merchants/{merchant_id}/people/invite: the link is shown once when there is no mail server."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        only_for(req, frozenset({"admin"}))
        merchant = await self.merchant(merchant_id)
        if await self._is_first(merchant_id):
            self._show(req, resp, merchant_id, email=merchant.owner_email, name="", ticked=("owner",))
        else:
            self._show(req, resp, merchant_id, email="", name="", ticked=())

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        form = await self.form(req)
        request = pb.InvitePersonRequest(
            email=form.prose("email", most=254),
            name=form.prose("name", most=128),
            merchant_id=merchant_id,
            member_roles=chosen(form, ROLES, prefix="role"),
        )
        try:
            if not request.member_roles:
                raise invalid("VALIDATION_ERROR", "choose at least one", field="roles")
            invited = await self.deps.people.InvitePerson(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            ticked = tuple(request.member_roles)
            self._show(
                req, resp, merchant_id, email=request.email, name=request.name, ticked=ticked, refused=refused
            )
            return
        back = f"/merchants/{merchant_id}/people"
        if invited.link:
            await self.show_link(req, resp, invited.link, invited.invitation, back=back)
        else:
            leave_for(resp, back, notice="invitation-sent")

    async def _is_first(self, merchant_id: str) -> bool:
        """Returns whether the merchant has neither a member nor an open invitation: the first is the owner's."""
        members = pb.ListPeopleRequest(merchant_id=merchant_id, limit=1)
        invited = pb.ListInvitationsRequest(merchant_id=merchant_id)
        people, invitations = await asyncio.gather(
            self.deps.people.ListPeople(members), self.deps.people.ListInvitations(invited)
        )
        return not (people.people or invitations.invitations)

    def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        merchant_id: str,
        *,
        email: str,
        name: str,
        ticked: Collection[str],
        refused: Refused | None = None,
    ) -> None:
        self.show(
            req,
            resp,
            "merchant-invite",
            refused=refused,
            path=f"/merchants/{merchant_id}/people",
            email=email,
            name=name,
            all_roles=ROLES,
            ticked=ticked,
        )


def _cells(merchant_id: str, person: pb.Person) -> Sequence[str]:
    state = "disabled" if person.disabled else "active" if person.has_complete_factors else "without factors"
    roles = " ".join(roles_at(merchant_id, person))
    return (person.email, person.name, roles, state, iso(person.created_at), iso(person.last_seen_at), "")


def _cells_of_invitation(merchant_id: str, invited: pb.Invitation) -> Sequence[str]:
    roles = " ".join(roles_at(merchant_id, invited))
    return (invited.email, invited.name, roles, "invited", "", "", iso(invited.expires_at))


def roles_at(merchant_id: str, person: pb.Person | pb.Invitation) -> list[str]:
    """Returns the roles at this merchant."""
    return [role for each in person.memberships if each.merchant_id == merchant_id for role in each.roles]
