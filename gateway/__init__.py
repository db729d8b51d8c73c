"""The HTTP server for programs and customers: `/api/v1` (docs/api.md), `/pay`, `/healthz`, `/readyz`.

Owns: HTTP itself. Routes, the key header, JSON in and out, the two validation shapes, the table from reasons to
statuses (`json.problems`), the customer's page. It keeps no state and has no database.
Calls: the service that owns the requested object, and before it identity, when the lease of the key has ended.
Does not own: any rule about invoices, money or webhooks. It checks the form of requests, never their meaning.

The path of a request: `kit.web.server` (uvicorn) -> `kit.web.edge` (client, raw path, request id, deadline, log line)
-> `app` (Falcon's routes) -> `access.auth` -> a resource of `api` or `pay`, which reads the body (`kit.web.bodies`) ->
gRPC -> its converter -> JSON. A refusal: `refusals` -> `json.problems`. `walls`, and `kit.web.walls` below it, bound
the resources that one client may take from the others.
"""
