"""The main program of a service (`main`): its settings, its signals, its workers and its end."""
