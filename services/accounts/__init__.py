"""People who sign in: their roles, factors and sessions, and the tokens that name them to the other services.

Owns: people, their roles (of the staff, and of members of merchants), invitations, passkeys, passwords, TOTP, recovery
codes, sessions, counters of guesses, the signing keys of actor tokens, e-mails that wait to be sent, also those that
withdrawals asks for.
Announces nothing and calls no service; it sends e-mail over SMTP.
Does not own: what a role may do (each service's permissions, beside its callers), merchants (merchants; here a merchant
is an id), the acts of other services (each service keeps its own).
"""
