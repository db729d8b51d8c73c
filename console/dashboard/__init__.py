"""Pages of members of merchants only."""
