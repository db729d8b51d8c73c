"""The feed of bank lines: what connectors post (docs/feed.md)."""
