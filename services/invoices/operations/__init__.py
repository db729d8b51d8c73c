"""What the service does: one public function per RPC and per timer.

`creating` and `reading` serve merchants, `checkout` the customer's page, `desk` the operator, `timers` the clock,
`proofs` whoever checks the books. `lifecycle` is what they share: the only place where a deal or an invoice changes.
"""
