"""Every process replaced by a new one under a steady load, as Kubernetes rolls it: what `make rolling` calls.

`cluster.py` is a small kubelet for real processes of this machine. It reads deploy/k8s/base: how many there are, which
commands, probes, budgets and patience they have. A pod has an address of its own (127.x.y.z); a Service is a name that
answers with the addresses of its ready pods, and for the gateway what leads each new connection to one of them.
`load.py` asks 200 times a second whatever happens, and lets a client try a second time, once. What must hold in the end
is asked of tests/faults/checker.py and `fiatgate verify`.

Not restarted: PostgreSQL and NATS. They keep state, have one server here, and tests/faults takes them away.
"""
