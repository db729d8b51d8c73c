"""What members of a merchant do to withdraw: their address book, and requests to an address of it."""
