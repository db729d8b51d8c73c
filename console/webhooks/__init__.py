"""Webhooks on both surfaces: the events, each attempt in words, the resend."""
