"""`python -m gptscope` is `gptscope`."""

from gptscope.app import main

if __name__ == "__main__":
    main()
