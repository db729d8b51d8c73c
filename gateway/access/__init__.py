"""API keys, and the number of requests that each may make in a minute."""
