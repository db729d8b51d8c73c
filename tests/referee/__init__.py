"""The referee: records what users of every kind see of a day, and compares a later recording with the committed one."""
