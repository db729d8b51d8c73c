"""Every query of the identity service, named by its result."""
