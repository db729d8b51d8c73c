"""Pages of operators only."""
