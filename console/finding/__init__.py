"""The desk's search over all things of all services."""
