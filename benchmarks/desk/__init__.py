"""The scene of benchmarks/bench_desk.py: years of invoices, an evening of open deals, operators."""
