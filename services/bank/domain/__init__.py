"""Pure rules; the time is an argument.

- `lines`: lines of statements, what makes two of them the same, the references in them
- `proposals`: the deal that a line may have paid
"""
