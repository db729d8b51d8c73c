"""One function per RPC or consumed event: the transaction, the rules, the answer.

Each takes `Deps` first, then values as they came in, and may raise VALIDATION_ERROR besides the reasons that it
names. The id of a withdrawal that is no UUID is answered like an unknown id.
"""
