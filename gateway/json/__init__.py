"""JSON in and out: bodies and queries that are checked, replies, and every error in its documented shape."""
