"""The operations of the service: one public function per RPC and per timer.

`creating` and `reading` serve merchants, `checkout` the customer's page, `desk`, `cases`, `requisites`, `reports` and
`merchant_methods` the operator, `timers` the clock, `verification` the audit of the books. All use `lifecycle`, the
only place where a deal or an invoice changes.
"""
