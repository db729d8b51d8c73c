"""Every query of the accounts service, named by its result."""
