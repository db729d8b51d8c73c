"""What bench_webhooks measures with: a receiver, the service with what it needs around it, loads and figures."""
