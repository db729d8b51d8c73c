"""Attacks on a running stack, and the victim beside them; `benchmarks.bench_walls` measures with it."""
