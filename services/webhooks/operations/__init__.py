"""The operations of the service: one public function per RPC and per consumed fact.

`reading` and `resending` serve merchants, `desk`, `verification` and `pruning` the operator; `queueing` serves the
consumer.
"""
