"""Owners, merchants, categories, API keys and their signing secrets (docs/api.md#authentication).

Owns them alone. The plaintext of an API key is stored nowhere; that of a secret is only in the answers of
CreateApiKey and GetSigningSecrets. Announces nothing and makes no calls: other services call it. The commission of a
category is kept here; the catalog computes with it. The default URLs of webhooks are kept here; invoices decides which
URL an invoice has.
"""
