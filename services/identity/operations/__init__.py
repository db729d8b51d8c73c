"""One function per RPC: the transaction, the rules, the answer.

Each takes `Deps` first, then values as they came in, and may raise VALIDATION_ERROR besides the reasons that it
names. An id that is no UUID is answered like an unknown id. The author of the call is kit.base.actors.current().
"""
