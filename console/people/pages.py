"""The list of people, one person, and the invitation of one more."""

from __future__ import annotations

from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.page import Page, chosen, leave_for
from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.errors import Refused, invalid
from kit.web.forms import Form

PEOPLE_PER_PAGE: Final = 50
ROLES_THAT_CHANGE: Final = frozenset({"admin", "owner"})
MENDABLE: Final = frozenset(
    {
        "VALIDATION_ERROR",
        "APPROVAL_REQUIRED",
        "APPROVAL_STATE_CONFLICT",
        "LAST_ADMIN",
        "LAST_OWNER",
        "MAIL_REQUIRED",
        "INVITATIONS_LIMITED",
    }
)


class PeoplePage(Page):
    """/people?after=…: by e-mail address, with the open invitations on the first page."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        self.only_for(req, self.deps.pages.opened_by("/people"))
        merchant_id = req.exchange.signed_in.merchant_id
        after = req.get_param("after") or ""
        request = pb.ListPeopleRequest(merchant_id=merchant_id, after_email=after, limit=PEOPLE_PER_PAGE + 1)
        people = (await self.deps.people.ListPeople(request)).people
        invitations: Any = ()
        if not after:
            listed = await self.deps.people.ListInvitations(
                pb.ListInvitationsRequest(merchant_id=merchant_id)
            )
            invitations = listed.invitations
        shown = people[:PEOPLE_PER_PAGE]
        self.show(
            req,
            resp,
            "people",
            people=[(each, roles_shown(req, each)) for each in shown],
            invitations=[(each, roles_shown(req, each)) for each in invitations],
            next=shown[-1].email if len(people) > PEOPLE_PER_PAGE else None,
            after=after,
            may_change=may_change(req),
        )

    on_head = on_get


class PersonPage(Page):
    """/people/{person_id}: roles, state, sessions."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        self.only_for(req, self.deps.pages.opened_by("/people"))
        await self._show(req, resp, person_id)

    on_head = on_get

    async def on_post_roles(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        form = await self.form(req)
        roles = chosen(form, self.deps.surface.roles, prefix="role")
        await self._set_roles(req, resp, person_id, roles)

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        await self.form(req)
        await self._set_roles(req, resp, person_id, [])

    async def on_post_disable(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        await self.form(req)
        try:
            await self.deps.people.DisablePerson(pb.DisablePersonRequest(person_id=person_id))
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, person_id, refused=refused)
        else:
            if person_id == req.exchange.signed_in.person.person_id:
                leave_for(resp, "/sign-in", notice="self-disabled")
            else:
                leave_for(resp, f"/people/{person_id}", notice="person-disabled")

    async def on_post_enable(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        await self.form(req)
        try:
            await self.deps.people.EnablePerson(pb.EnablePersonRequest(person_id=person_id))
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, person_id, refused=refused)
        else:
            leave_for(resp, f"/people/{person_id}", notice="person-enabled")

    async def on_post_recover(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        """Makes a link for a person who has lost all factors; it is shown once when there is no mail server."""
        await self.form(req)
        merchant_id = req.exchange.signed_in.merchant_id
        request = pb.RecoverPersonRequest(person_id=person_id, merchant_id=merchant_id)
        try:
            made = await self.deps.people.RecoverPerson(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, person_id, refused=refused)
            return
        if made.link:
            self.show(req, resp, "invited", link=made.link, invitation=made.invitation)
        else:
            leave_for(resp, f"/people/{person_id}", notice="recovery-sent")

    async def on_post_session(
        self, req: Request, resp: falcon.asgi.Response, person_id: str, session_id: str
    ) -> None:
        await self.form(req)
        ended = self.deps.people.EndSession(pb.EndSessionRequest(session_id=session_id))
        await self.leave_after(
            resp, ended, f"/people/{person_id}", notice="session-ended", mendable=("SESSION_NOT_FOUND",)
        )

    async def _set_roles(
        self, req: Request, resp: falcon.asgi.Response, person_id: str, roles: list[str]
    ) -> None:
        merchant_id = req.exchange.signed_in.merchant_id
        request = pb.SetRolesRequest(person_id=person_id, roles=roles, merchant_id=merchant_id)
        try:
            await self.deps.people.SetRoles(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, person_id, refused=refused, ticked=roles)
            return
        if merchant_id and not roles:  # no member any more, so the person's page is gone
            leave_for(resp, "/people", notice="member-removed")
        else:
            leave_for(resp, f"/people/{person_id}", notice="roles-set")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        person_id: str,
        *,
        refused: Refused | None = None,
        ticked: list[str] | None = None,
    ) -> None:
        person = (await self.deps.people.GetPerson(pb.GetPersonRequest(person=person_id))).person
        sessions: Any = ()
        if not self.deps.surface.has_merchants:  # a session may be of other merchants
            request = pb.ListSessionsRequest(person_id=person.person_id)
            sessions = (await self.deps.people.ListSessions(request)).sessions
        self.show(
            req,
            resp,
            "person",
            refused=refused,
            person=person,
            ticked=roles_shown(req, person) if ticked is None else ticked,
            sessions=sessions,
            is_self=person.person_id == req.exchange.signed_in.person.person_id,
            may_change=may_change(req),
        )


class InvitePage(Page):
    """/people/invite: the link is shown once when there is no mail server."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        self.only_for(req, ROLES_THAT_CHANGE)
        self.show(req, resp, "invite", email="", name="", ticked=())

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        request = self._request(req, form)
        try:
            if not (request.roles or request.member_roles):
                raise invalid("VALIDATION_ERROR", "choose at least one", field="roles")
            invited = await self.deps.people.InvitePerson(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            if refused.reason == "APPROVAL_REQUIRED":  # the form is done with
                self.show(req, resp, "invite", refused=refused, email="", name="", ticked=())
                return
            ticked = [*request.roles, *request.member_roles]
            self.show(
                req, resp, "invite", refused=refused, email=request.email, name=request.name, ticked=ticked
            )
            return
        if invited.link:
            self.show(req, resp, "invited", link=invited.link, invitation=invited.invitation)
        else:
            leave_for(resp, "/people", notice="invitation-sent")

    def _request(self, req: Request, form: Form) -> pb.InvitePersonRequest:
        merchant_id = req.exchange.signed_in.merchant_id
        roles = chosen(form, self.deps.surface.roles, prefix="role")
        return pb.InvitePersonRequest(
            email=form.prose("email", most=254),
            name=form.prose("name", most=128),
            merchant_id=merchant_id,
            roles=() if merchant_id else roles,
            member_roles=roles if merchant_id else (),
        )


class InvitationsPage(Page):
    """/people/invitations/{invitation_id}/withdraw"""

    async def on_post_withdraw(self, req: Request, resp: falcon.asgi.Response, invitation_id: str) -> None:
        await self.form(req)
        withdrawn = self.deps.people.WithdrawInvitation(
            pb.WithdrawInvitationRequest(invitation_id=invitation_id)
        )
        await self.leave_after(
            resp, withdrawn, "/people", notice="invitation-withdrawn", mendable=("INVITATION_NOT_FOUND",)
        )


def roles_shown(req: Request, person: pb.Person | pb.Invitation) -> list[str]:
    """Returns the roles of the staff, or on the dashboard those at the session's merchant."""
    merchant_id = req.exchange.signed_in.merchant_id
    if not merchant_id:
        return list(person.roles)
    return [role for each in person.memberships if each.merchant_id == merchant_id for role in each.roles]


def may_change(req: Request) -> bool:
    """Returns whether to offer forms; accounts decides again."""
    session = req.exchange.signed_in
    return bool(ROLES_THAT_CHANGE & set(roles_shown(req, session.person)))
