"""The `fiatgate` command: what an operator does, over the services' gRPC.

Owns nothing: every command is one or a few calls. `commands/` has one file per word after `fiatgate`; `output` prints
for people and for scripts; `connection` finds the services; `verifying` and `demonstrating` are the two long commands.
"""
