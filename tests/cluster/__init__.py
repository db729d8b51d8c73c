"""Fiatgate on the cluster that `kubectl` points to, from `apply` to killed databases: what `make cluster` calls.

`overlay.py` puts deploy/k8s/overlays/local into a namespace of its own and adds the pod of a shop, whose program is
`shop.py`: it asks the gateway's Service so many times a second, tries nothing twice and receives the webhooks.
`load.py` runs it, and is the operator who confirms what customers mark as paid, by the command `fiatgate` in its pod.
`trial.py` has the steps, one row of the table each; `verdicts.py` says what is wrong with what they saw. In the end
the namespace is deleted, also after Ctrl-C. A namespace of the same name that it did not make is left alone, and
nothing is done.
"""
