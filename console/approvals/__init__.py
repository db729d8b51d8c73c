"""Requests for a second person, of all services: what one person requested, another one approves or rejects."""
