"""The customer's page behind `payment_link`: plain HTML that needs no script.

`view` decides what to show from what invoices answered, `page` holds the routes, `rendering` the templates and the
headers, `forms` what comes back. Every POST is safe to repeat and ends in a redirect to a page that can be reloaded.
"""
