"""People and merchants: their proofs at sign-in and in API calls, and the tokens that name people to other services.

Owns: people, their roles (of the staff, and of members of merchants), invitations, passkeys, passwords, TOTP, recovery
codes, sessions, counters of guesses, the signing keys of actor tokens, e-mails that wait to be sent, also those that
withdrawals asks for; owners, merchants with their settings and logos, categories with their commissions, API keys and
signing secrets (docs/api.md#authentication). The plaintext of an API key is stored nowhere; that of a secret is only in
the answers of CreateApiKey and GetSigningSecrets.
Announces nothing and calls no service; it sends e-mail over SMTP.
Does not own: what a role may do (each service's permissions, beside its callers), the acts of other services (each
service keeps its own), the rates and the split that a commission leads to (catalog), and the choice of an invoice's
URLs (invoices), which may take the default URLs from here.
"""
