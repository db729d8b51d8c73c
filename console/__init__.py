"""Pages for people who sign in: the desk for operators, the dashboard for members of merchants, a process each.

Owns: the HTML, the cookie of a session, the forms. It keeps no state and has no database.
Calls: accounts at every request with a session, which answers with the person and a token of 60 seconds; then the
service that owns the requested thing, with that token. Services decide by the token what the person may do.
Does not own: any rule about people, roles or money. A page that it does not offer is refused by the service too.

The path of a request: `kit.web.server` (uvicorn) -> `kit.web.edge` -> `app` (Falcon's routes) -> `signin.access`
(own pages only, session, token) -> a resource -> gRPC -> a template of its room in the layout of `ui`.
A refusal: `refusals`, which asks for a step-up where one is missing.
"""
