"""The API's own description: OpenAPI 3.1 at /api/v1/openapi.json, and the same for people at /docs.

Nothing that the gateway enforces is written a second time here: the request body is the pydantic model of
`gateway.json.body`, errors are the table of `gateway.json.problems` (the function that answers makes the examples),
names of states are those of the converters in `gateway.api`. The members of answers are written by hand;
tests/gateway/conformance.py compares them with the real answers to all requests of the gateway's tests.

`document` is built from `operations` (the nine endpoints), `answers` (their members), `errors` and `webhook`; `page`
shows it, with the glossary of `words`; `recipes/` has the signature check in five languages, each run by a test.
"""
