"""An invented world to try Fiatgate with: currencies, payment methods, accounts, a shop, its people, rates, and the
shop's server for webhooks. `make run` makes it at its first start, `fiatgate demo` in a cluster.

Owns none of it: the services do, and all is made through their calls, as an operator makes it. Nothing here is needed
where real money is taken.
"""
