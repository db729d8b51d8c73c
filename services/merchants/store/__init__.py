"""Every query of the merchants service, named by its result."""
