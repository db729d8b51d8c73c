"""The customer's page behind `payment_link`: plain HTML that needs no script.

`view` derives the page's content from the answer of invoices, `page` has the routes, `rendering` the templates and
headers, `forms` reads posted forms. Every POST is safe to repeat and ends in a redirect to a page that can be reloaded.
"""
