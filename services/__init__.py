"""The services. Each has the same files (docs/ARCHITECTURE.md#one-service); none imports another."""
