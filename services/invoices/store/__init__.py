"""Every query of the invoices service, named by its result. No decisions are made here.

- `invoices`: invoices with their newest deal, and the outbox
- `invoice_lists`: invoices of all merchants, for operators
- `merchant_lists`: a merchant's list, with the number of all that match
- `stories`: everything that is stored about one invoice
- `opening`: the statement that opens a deal
- `deals`: deals with their history, requisites, the switch
- `deal_lists`: deals with what operators compare
- `requisites`: requisites with their use by day and their deals
- `queues`: the numbers of things that wait for operators
- `finding`: the operator's search
- `daily`: sums of events by day
- `books`: the invariants that `fiatgate verify` proves
- `shares`: the part of a payment method that one merchant may hold
- `cases`: late money and pictures
- `facts`: the signed facts of finished invoices
- `lines`: bank lines that have paid deals
- `views`: the results of queries
"""
