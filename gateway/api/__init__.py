"""What merchants call (SPEC, Endpoints): one module per kind of thing, its resource and its converters side by side."""
