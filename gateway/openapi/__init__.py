"""The API's description: `openapi.yaml`, served at /api/v1/openapi.json, and the same for people at /docs.

The document is written by hand. tests/gateway/test_openapi.py compares its routes, codes, bounds and members with the
gateway, and tests/gateway/conformance.py each answer of the gateway's tests. `page` shows it, with the glossary of
`words`; `recipes/` has the signature check in five languages, each run by a test.
"""
