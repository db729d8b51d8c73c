"""The only HTTP of the house: `/api/v1` for merchants (docs/api.md), `/pay` for customers, `/healthz` and `/readyz`.

Owns: HTTP itself. Routes, the key header, JSON in and out, the two validation shapes, the one table from reasons to
statuses (`problems`), the customer's page. It keeps no state and has no database.
Calls: merchants at every request that carries a key, then the service that owns what was asked for; so create-invoice
costs exactly two calls.
Does not own: any rule about invoices, money or webhooks. It checks the form of what comes in, never its meaning.

A request's way: `server` (gunicorn) -> `edge` (client, raw path, request id, deadline, log line) -> `app` (Falcon's
routes) -> `auth` -> a resource of `api` or `pay`, which asks for the body (`bodies`) -> gRPC -> its converter ->
JSON. A refusal: `refusals` -> `problems`. `walls` bounds what one client may take from the others.
"""
