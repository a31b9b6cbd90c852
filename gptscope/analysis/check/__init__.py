"""What may be wrong with a model: its files, its numbers, its conventions."""
