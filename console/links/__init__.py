"""Payment links that a member of a merchant makes by hand: the form, and the link with its QR code."""
