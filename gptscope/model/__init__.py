"""Folder on disk -> Model."""
