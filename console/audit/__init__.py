"""Acts of all services, merged by time: on the desk all of them, on the dashboard those of the own merchant."""
