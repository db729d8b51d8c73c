"""Clients that generators of others make of the OpenAPI document, against a running stack: `make generators`.

Each is generated and compiled in a temporary folder; its program in `clients/` creates an invoice and reads errors.
"""
