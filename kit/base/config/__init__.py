"""Settings from the environment: types of values, the classes of the processes, the names of the variables."""
