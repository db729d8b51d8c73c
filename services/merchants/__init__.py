"""Owners, merchants, categories, API keys and their signing secrets (docs/api.md#authentication).

Owns: owners, merchants with their settings and logos, categories with their commissions, API keys and signing secrets.
The plaintext of an API key is stored nowhere; that of a secret is only in the answers of CreateApiKey and
GetSigningSecrets.
Announces nothing and makes no calls: other services call it.
Does not own: the rates and the split that a commission leads to (catalog), and the choice of an invoice's URLs
(invoices), which may take the default URLs from here.
"""
