"""`python -m ollm` is the command."""

from ollm.cli.main import run

if __name__ == "__main__":
    run()
