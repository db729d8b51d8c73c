"""How Fiatgate is put on machines: `local` behind `make run`, `k8s` for clusters."""
