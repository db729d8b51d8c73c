"""What the harnesses share: `command` runs the rounds of one of them, prints what it came to and gives the verdict."""
