"""``python -m study``."""

from study.commands import main

if __name__ == "__main__":  # a worker process imports this module under another name
    main(prog_name="python -m study")
