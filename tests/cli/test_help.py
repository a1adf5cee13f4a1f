"""The help of every command: an example each, on the reference page, without slow imports."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import click
import pytest

from lrm.cli import main
from lrm.planning.strategies import MECHANISMS
from lrm.queries.workload.specs import FAMILIES

DOCS = Path(__file__).parents[2] / "docs"


def all_commands():
    """Every command by its full name, those inside groups too."""
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", part) for inner, part in command.commands.items())


EVERY = tuple(all_commands())


@pytest.mark.parametrize(("name", "command"), EVERY)
def test_help_has_an_example_of_the_command(run, name, command):
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    _, _, example = result.stdout.partition("Example:\n")
    assert example.strip().startswith(f"lrm {name}")
    assert "\\b" not in result.stdout
    assert "\b" not in result.stdout


@pytest.mark.parametrize("name", ["", *(name for name, _ in EVERY)])
def test_help_fits_80_columns(run, name):
    lines = run(*name.split(), "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_the_help_and_the_page_name_every_mechanism_and_family(run):
    shown = run("plan", "--help").stdout
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    for mechanism in MECHANISMS:
        assert re.search(rf"\b{mechanism}[,.]", shown), mechanism
    for family in FAMILIES:
        assert re.search(rf"\b{family}:", shown), family
        assert f"`{family}:" in page, family


def test_the_first_help_has_an_example_too(run):
    _, _, example = run("--help").stdout.partition("Example:\n")
    assert example.strip().startswith("lrm ")


@pytest.mark.parametrize("group", ["", "budget", "domain"])
def test_a_group_without_a_command_shows_its_help(run, group):
    result = run(*group.split())
    assert result.exit_code == 2
    assert result.stderr == run(*group.split(), "--help").stdout


@pytest.mark.parametrize(("name", "command"), EVERY)
def test_every_option_has_a_help_text(name, command):
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.opts


def test_the_page_has_the_help_of_every_command():
    """The site's hook writes it below the headings that the page has by hand."""
    spec = spec_from_file_location("site_pages", DOCS / "site_pages.py")
    hook = module_from_spec(spec)
    spec.loader.exec_module(hook)
    page = hook.on_page_markdown((DOCS / "reference" / "cli.md").read_text(encoding="utf-8"))
    for name, command in EVERY:
        section = page.partition(f"# lrm {name}\n")[2].partition("\n#")[0]
        for parameter in command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) else ():
                assert option in section, f"{option} of `lrm {name}`"


def test_the_page_names_no_option_that_does_not_exist():
    real = {o for _, command in EVERY for p in command.params for o in p.opts}
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(--?[a-z][a-z-]*)`", page)) <= real


def test_commands_are_listed_with_their_short_help(run):
    listing = run("--help").stdout
    for name, command in EVERY:
        if " " not in name:
            assert command.short_help
            assert command.short_help in listing


def test_the_page_lists_every_command_as_it_is_read_in_a_clone():
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    for name, command in EVERY:
        group, _, inner = name.partition(" ")
        row = re.search(rf"^\| `lrm {group}`(.*) \| (.*) \|$", page, re.MULTILINE)
        assert row, name
        assert f"`{inner}`" in row[1] if inner else row[2] == command.short_help


def test_every_command_prints_json():
    for name, command in EVERY:
        if not isinstance(command, click.Group):
            assert "--json" in [o for p in command.params for o in p.opts], name


@pytest.mark.parametrize("args", [["--help"], ["plan", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(args):
    code = (
        "import sys\n"
        "from lrm.cli import main\n"
        f"try: main({args!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'rich', 'matplotlib', 'opendp', 'pyarrow', 'sqlglot'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_release_loads_neither_mechanisms_nor_other_libraries_of_data():
    """What `lrm release` imports took a fifth of its time."""
    code = (
        "import sys\n"
        "import lrm.planning.plan.file, lrm.views.documents, lrm.releases.making\n"
        "from fractions import Fraction\n"
        "from lrm.privacy.budget import PureDP, ZCDP\n"
        "from lrm.privacy.noise import calibrate_gaussian, calibrate_laplace\n"
        "one = Fraction(1)\n"
        "calibrate_gaussian(1, ZCDP(one)), calibrate_laplace(1, PureDP(one))\n"
        "heavy = {'scipy.optimize', 'polars', 'lrm.planning.strategies.best',"
        " 'lrm.planning.solvers.race'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version(run):
    result = run("--version")
    assert re.fullmatch(r"lrm \d+\.\d+\.\d+\S*\n", result.stdout)
