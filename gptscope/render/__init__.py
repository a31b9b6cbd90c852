"""View -> text."""
