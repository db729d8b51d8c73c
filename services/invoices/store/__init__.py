"""Every query of the invoices service, named by its result. No decisions are made here.

- `invoices`: invoices with their newest deal, and the outbox
- `invoice_lists`: invoices of all merchants, for operators
- `stories`: everything that is stored about one invoice
- `deals`: deals with their history, requisites, the switch
- `shares`: the part of a payment method that one merchant may hold
- `cases`: late money and pictures
- `facts`: the signed facts of finished invoices
- `views`: the results of queries
"""
