"""Trace -> numbers worth a name."""
