"""Run a benchmark: ``python -m benchmarks NAME``, with the options that ``NAME --help`` lists."""

from __future__ import annotations

import runpy
import sys

FOLDERS = {
    "gates": "golden limits mutants settings shape unseen",
    "evidence": "counting engines growth long many noises numbers people products profile readme "
    "report rows scaling shaped sql statements tables workbench",
    "comparisons": "gaussian strategies tools",
}
MODULES = {
    name: f"benchmarks.{folder}.{name}" for folder in FOLDERS for name in FOLDERS[folder].split()
}


def main() -> int:
    """Run the module of that name; without one, the comparison of strategies."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        for folder, names in FOLDERS.items():
            print(f"  {folder}: {names}")
        return 0
    name = "strategies" if not arguments or arguments[0].startswith("-") else arguments[0]
    if name not in MODULES:
        print(f"no benchmark is called {name!r}; one of: {', '.join(sorted(MODULES))}")
        return 2
    sys.argv[1:] = arguments[1:] if arguments[:1] == [name] else arguments
    runpy.run_module(MODULES[name], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
