"""fiatgate.accounts.v1.PeopleService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from services.accounts.operations import invitations, people, sessions
from services.accounts.rpc.converters import invitation_to_message, person_to_message, session_to_message
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class PeopleServicer(accounts_pb2_grpc.PeopleServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListPeople(
        self, request: pb.ListPeopleRequest, context: grpc.ServicerContext
    ) -> pb.ListPeopleResponse:
        found = people.list_people(
            self._deps, merchant_id=request.merchant_id, after_email=request.after_email, limit=request.limit
        )
        return pb.ListPeopleResponse(people=[person_to_message(each) for each in found])

    def GetPerson(self, request: pb.GetPersonRequest, context: grpc.ServicerContext) -> pb.GetPersonResponse:
        person = people.get_person(self._deps, person=request.person)
        return pb.GetPersonResponse(person=person_to_message(person))

    def InvitePerson(
        self, request: pb.InvitePersonRequest, context: grpc.ServicerContext
    ) -> pb.InvitePersonResponse:
        made = invitations.invite_person(
            self._deps,
            email=request.email,
            name=request.name,
            roles=request.roles,
            merchant_id=request.merchant_id,
            member_roles=request.member_roles,
        )
        return pb.InvitePersonResponse(invitation=invitation_to_message(made.invitation), link=made.link)

    def RecoverPerson(
        self, request: pb.RecoverPersonRequest, context: grpc.ServicerContext
    ) -> pb.RecoverPersonResponse:
        made = invitations.recover_person(
            self._deps, person_id=request.person_id, merchant_id=request.merchant_id
        )
        return pb.RecoverPersonResponse(invitation=invitation_to_message(made.invitation), link=made.link)

    def ListInvitations(
        self, request: pb.ListInvitationsRequest, context: grpc.ServicerContext
    ) -> pb.ListInvitationsResponse:
        found = invitations.list_invitations(self._deps, merchant_id=request.merchant_id)
        return pb.ListInvitationsResponse(invitations=[invitation_to_message(each) for each in found])

    def WithdrawInvitation(
        self, request: pb.WithdrawInvitationRequest, context: grpc.ServicerContext
    ) -> pb.WithdrawInvitationResponse:
        invitations.withdraw_invitation(self._deps, invitation_id=request.invitation_id)
        return pb.WithdrawInvitationResponse()

    def SetRoles(self, request: pb.SetRolesRequest, context: grpc.ServicerContext) -> pb.SetRolesResponse:
        person = people.set_roles(
            self._deps,
            person_id=request.person_id,
            roles=request.roles,
            merchant_id=request.merchant_id,
            was=request.was.roles if request.HasField("was") else None,
        )
        return pb.SetRolesResponse(person=person_to_message(person))

    def DisablePerson(
        self, request: pb.DisablePersonRequest, context: grpc.ServicerContext
    ) -> pb.DisablePersonResponse:
        person = people.disable_person(self._deps, person_id=request.person_id)
        return pb.DisablePersonResponse(person=person_to_message(person))

    def EnablePerson(
        self, request: pb.EnablePersonRequest, context: grpc.ServicerContext
    ) -> pb.EnablePersonResponse:
        person = people.enable_person(self._deps, person_id=request.person_id)
        return pb.EnablePersonResponse(person=person_to_message(person))

    def ListSessions(
        self, request: pb.ListSessionsRequest, context: grpc.ServicerContext
    ) -> pb.ListSessionsResponse:
        found = sessions.list_sessions(self._deps, person_id=request.person_id)
        return pb.ListSessionsResponse(sessions=[session_to_message(each) for each in found])

    def EndSession(
        self, request: pb.EndSessionRequest, context: grpc.ServicerContext
    ) -> pb.EndSessionResponse:
        sessions.end_session(self._deps, session_id=request.session_id)
        return pb.EndSessionResponse()
