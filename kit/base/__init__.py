"""The base of everything else: time, ids, money, settings, request ids, keys, certificates, pictures."""
