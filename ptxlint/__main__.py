"""`python -m ptxlint`."""

from ptxlint.cli import main

if __name__ == "__main__":
    main()
