"""One file for each command. NumPy is imported when a command runs, not when its help is shown:
it takes more than half of the start."""
