"""The endpoints under `/api/v1` (docs/api.md): one module per kind of object, with its resources and converters."""
