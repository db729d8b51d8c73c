"""gRPC for all processes: server, client, deadlines, request ids, typed errors, health."""
