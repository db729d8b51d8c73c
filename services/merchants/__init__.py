"""Owners, merchants, categories, API keys and their signing secrets (docs/api.md#authentication).

Owns them alone; the plaintext of an API key is nowhere, that of a secret only in the answers of
CreateApiKey and GetSigningSecrets. Announces nothing and calls nobody: others ask. The commission of a
category is kept here, what it makes of a payment is the catalog's; which URL a webhook goes to is the
invoices', only the defaults are here.
"""
