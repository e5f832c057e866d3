"""`python -m harness` is the command line."""

from harness.cli import main

# A worker process imports this module under another name, and must not start a command.
if __name__ == "__main__":
    main()
