"""The scene of benchmarks/bench_dashboard.py: a thousand merchants, their months of business, and a member of each."""
