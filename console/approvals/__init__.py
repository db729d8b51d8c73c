"""Requests for a second pair of eyes, of all services: what one person requested, another one approves or rejects."""
