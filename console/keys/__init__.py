"""API keys of a merchant on both surfaces: a new one with its secret is shown once."""
