"""``lrm completion``: the script that lets a shell complete commands and options."""

import click

from lrm.cli.terminal import print_json


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def completion(ctx: click.Context, /, shell: str, *, as_json: bool) -> None:
    r"""Print the completion script of SHELL (bash, zsh or fish).

    \b
    Example:
      lrm completion bash >> ~/.bashrc
      lrm completion zsh >> ~/.zshrc
      lrm completion fish > ~/.config/fish/completions/lrm.fish
    """
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None  # noqa: S101 - click knows the three shells of the choice
    maker = complete(ctx.find_root().command, {}, "lrm", "_LRM_COMPLETE")
    # source() of bash starts a shell to look at its version; the template itself does not.
    script = maker.source_template % maker.source_vars()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
