"""Every query of bank, named by its result: `imports` and `lines`. No decisions are made here."""
