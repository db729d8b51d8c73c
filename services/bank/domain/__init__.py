"""Pure rules; the time is an argument.

- `lines`: lines of statements, what makes two of them the same, the references in them
- `feed`: the steps of a line that a connector posts
- `proposals`: the deal that a line may have paid
"""
