"""`python -m gptscope`, and the command `gptscope`."""

import signal


def main() -> None:
    """Run the command line; an interrupt while it is still being loaded ends it without a word."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # and not ignored
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gptscope.app import main as run  # noqa: PLC0415 - takes most of the start

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
