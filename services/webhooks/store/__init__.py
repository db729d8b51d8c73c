"""Every query of the service, named by what it returns: `claims` for the engine, `events` for everybody else."""
