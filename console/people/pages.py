"""The list of people, one person, and the invitation of one more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, chosen, leave_for
from console.ui.pages import only_for
from console.ui.values import iso
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.approvals.v1 import approvals_pb2
from kit.rpc.errors import Refused, invalid
from kit.web.forms import Form

ROLES_THAT_CHANGE: Final = frozenset({"admin", "owner"})
NO_ROLES: Final = "none"
"""The value of a form that was made from a person without roles."""
MENDABLE: Final = frozenset(
    {
        "VALIDATION_ERROR",
        "APPROVAL_REQUIRED",
        "APPROVAL_STATE_CONFLICT",
        "EDIT_CONFLICT",
        "LAST_ADMIN",
        "LAST_OWNER",
        "MAIL_REQUIRED",
        "INVITATIONS_LIMITED",
    }
)


class PeoplePage(ListPage):
    """/people and /people.csv: by e-mail address; on the first page what waits: invitations, requests about people."""

    link = "/people"
    template = "people"
    csv_name = "people"
    per_call = 200
    columns = ("email", "name", "roles", "state", "created_at", "last_seen_at")

    async def rows(self, req: Request, asked: Asked) -> Found:
        merchant_id = req.exchange.signed_in.merchant_id
        request = pb.ListPeopleRequest(merchant_id=merchant_id, after_email=asked.after, limit=asked.limit)
        people = (await self.deps.people.ListPeople(request)).people
        rows = [(each, roles_shown(req, each)) for each in people]
        return asked.found(rows, after=lambda row: row[0].email)

    def cells(self, row: tuple[pb.Person, list[str]], found: Found) -> Sequence[str]:
        person, roles = row
        state = "disabled" if person.disabled else "active"
        return (
            person.email,
            person.name,
            " ".join(roles),
            state,
            iso(person.created_at),
            iso(person.last_seen_at),
        )

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        shown = {"invitations": [], "requests": (), "may_change": may_change(req)}
        if req.get_param("after"):
            return shown
        request = pb.ListInvitationsRequest(merchant_id=req.exchange.signed_in.merchant_id)
        invitations = (await self.deps.people.ListInvitations(request)).invitations
        shown["invitations"] = [(each, roles_shown(req, each)) for each in invitations]
        if not self.deps.surface.has_merchants:
            waiting = approvals_pb2.ListApprovalsRequest(state=approvals_pb2.APPROVAL_STATE_PENDING)
            shown["requests"] = (await self.deps.approvals["identity"].ListApprovals(waiting)).approvals
        return shown


class PersonPage(Page):
    """/people/{person_id}: roles, state, sessions."""

    link = "/people"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        await self._show(req, resp, person_id)

    on_head = on_get

    async def on_post_roles(self, req: Request, resp: falcon.asgi.Response, person_id: str) -> None:
        form = await self.form(req)
        roles = chosen(form, self.deps.surface.roles, prefix="role")
        was = form.prose("was", most=300)
        seen = pb.Roles(roles=() if was == NO_ROLES else was.split()) if was else None
        await self._set_roles(req, resp, person_id, roles, seen)

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
            await self.show_link(req, resp, made.link, made.invitation)
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
        self,
        req: Request,
        resp: falcon.asgi.Response,
        person_id: str,
        roles: list[str],
        was: pb.Roles | None = None,
    ) -> None:
        """Replaces the roles; with `was` only if the person still has those."""
        merchant_id = req.exchange.signed_in.merchant_id
        request = pb.SetRolesRequest(person_id=person_id, roles=roles, merchant_id=merchant_id, was=was)
        try:
            await self.deps.people.SetRoles(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            is_stale = refused.reason == "EDIT_CONFLICT"  # then the present roles are shown
            await self._show(req, resp, person_id, refused=refused, ticked=None if is_stale else roles)
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
            was=" ".join(roles_shown(req, person)) or NO_ROLES,
            sessions=sessions,
            is_self=person.person_id == req.exchange.signed_in.person.person_id,
            may_change=may_change(req),
        )


class InvitePage(Page):
    """/people/invite: the link is shown once when there is no mail server."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, ROLES_THAT_CHANGE)
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
            await self.show_link(req, resp, invited.link, invited.invitation)
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
