"""What a user can mend."""


class InputError(Exception):
    """A file, a size or a setting that cannot be used, said in one sentence."""
