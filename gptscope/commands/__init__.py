"""One file for each command.

NumPy is imported when a command runs, not for its help: it takes more than half of the start.
"""
