"""Readers of bank statements: bytes of a stranger in, values of the domain out, or one sentence that refuses all."""
