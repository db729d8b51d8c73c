"""The rules of people and merchants. Pure; the time is an argument.

- `people`: roles, limits of sessions, delays of guesses
- `merchants`: merchants and their admission, the bounds of values
"""
