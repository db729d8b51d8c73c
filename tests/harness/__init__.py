"""The shared part of the harnesses: `command` runs the rounds of one, prints their table and gives the verdict."""
