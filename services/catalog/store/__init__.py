"""Every query of the catalog, named by its result: `entries` and `rates`. No decisions are made here."""
