"""How a process reports on itself: log lines, metrics, traces."""
