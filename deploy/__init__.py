"""The deployments of Fiatgate: `local` for `make run`, `k8s` for clusters."""
