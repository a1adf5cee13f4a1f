"""``python -m lrm``: the command line without an installed script."""

from lrm.cli import main

if __name__ == "__main__":
    main(prog_name="lrm")
