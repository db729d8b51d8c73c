"""The rules of invoices and deals. Pure; the time is an argument.

- `states`: states, transitions, expiry, and the names of a finished invoice in webhooks
- `money`: the amounts of a deal
- `places`: the places on requisites and the share of one merchant
- `creating`: the refusals of create-invoice
- `late`: late money and pictures
"""
