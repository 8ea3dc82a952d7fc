"""`python -m gpurules`. May live here: the call of the command line. Must not: anything else."""

from .cli import main

if __name__ == "__main__":
    main()
