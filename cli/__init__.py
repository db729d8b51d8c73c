"""The `fiatgate` command: the work of an operator, over the services' gRPC.

It owns no data: every command is one or a few calls. `commands/` has one file per word after `fiatgate`; `command`
declares a command by its request and options, `listing` a list by its columns; `output` prints for people and for
scripts; `connection` finds the services; `verifying` and `demonstrating` are the two long commands.
"""
