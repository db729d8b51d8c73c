"""gRPC as every process here does it: server, client, deadlines, request ids, typed errors, health."""
