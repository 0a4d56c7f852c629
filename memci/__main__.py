"""`python -m memci`: the command line. It knows nothing that `memci.cli` does not."""

from .cli import main

if __name__ == "__main__":
    main()
