"""Every query of the webhooks service, named by its result: `claims` for the engine, `events` for all else."""
