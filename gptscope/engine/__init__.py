"""Model and ids -> Trace."""
