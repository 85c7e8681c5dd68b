"""`duly completion`: the script that teaches a shell the command line."""

from __future__ import annotations

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
WHERE = {
    "bash": "duly completion bash > ~/.local/share/bash-completion/completions/duly",
    "zsh": "duly completion zsh > ~/.zfunc/_duly    (with ~/.zfunc in $fpath)",
    "fish": "duly completion fish > ~/.config/fish/completions/duly.fish",
}


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def completion(context: click.Context, shell: str | None) -> None:
    """Print the script that completes duly's commands and options in SHELL (default: the one of $SHELL).

    \b
    Example: duly completion bash > ~/.local/share/bash-completion/completions/duly
    """
    name = shell or PurePath(os.environ.get("SHELL", "")).name
    script = get_completion_class(name)
    if name not in SHELLS or script is None:
        raise click.UsageError(f"The shell {name!r} is not known here: name one of {', '.join(SHELLS)}.")
    click.echo(script(context.find_root().command, {}, "duly", "_DULY_COMPLETE").source(), nl=False)
    click.echo(f"# To keep it: {WHERE[name]}")
