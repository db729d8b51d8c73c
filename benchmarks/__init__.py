"""Runnable measurements with their limits beside them; `python -m benchmarks` runs them all (README.md)."""
