"""The API's own description: OpenAPI 3.1 at /api/v1/openapi.json, and the same for people at /docs.

What the gateway decides by is not written a second time here: the request body is the pydantic model of `gateway.body`,
errors are the table of `gateway.problems` (statuses, details, and the examples are made by the function that answers),
names of states are those of the converters in `gateway.api`. What is written by hand, the members of answers, is
compared with real ones by tests/gateway/conformance.py at every request the gateway's tests make.

`document` puts it together from `operations` (the nine endpoints), `answers` (their members), `errors` and `webhook`;
`page` shows it, with the glossary of `words`; `recipes/` has the signature check in five languages, each run by a test.
"""
