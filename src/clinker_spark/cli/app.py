"""What all commands share: subcommands that load when they are called, and one guard around everything.

Exit codes: 0 done, 1 the program or pipeline is wrong, 2 a file or option cannot be used, 3 a run was aborted,
4 a run failed for an outside reason, 130 interrupted. The guard makes sure that a traceback is never one of them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import click

from clinker_spark import __version__
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import ClinkerError


class Lazy(NamedTuple):
    """A subcommand that is imported when it is called: `module` has a click command named `command`.

    `summary` repeats the first line of its help, so that `--help` lists all commands without importing any;
    a test keeps the two the same.
    """

    module: str
    summary: str


class LazyGroup(click.Group):
    """A click group whose subcommands stand in a table of `Lazy` rows."""

    def __init__(self, *args: Any, lazy: dict[str, Lazy] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = self.lazy.get(cmd_name)
        if row is None:
            return super().get_command(ctx, cmd_name)
        command = importlib.import_module(row.module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            help_line = did_you_mean(name, known)
            ctx.fail(f"no such command '{name}'" + (f"; {help_line}" if help_line else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            if name in self.lazy:
                rows.append((name, self.lazy[name].summary))
            elif (command := super().get_command(ctx, name)) is not None:
                rows.append((name, command.get_short_help_str()))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def run(command: click.Command, name: str, args: Sequence[str] | None = None) -> NoReturn:
    """Run a command as the whole process: every way it can end becomes an exit code and readable text."""
    if os.environ.get(f"_{name.upper()}_COMPLETE"):  # the shell asks for completions: click's own protocol
        command.main(prog_name=name)
    try:
        # Not command.main(): it would end a broken pipe with 1 before the branch below sees it.
        with command.make_context(name, list(sys.argv[1:] if args is None else args)) as ctx:
            result = command.invoke(ctx)
        if sys.stdout is not None:  # it is None when the caller closed it
            sys.stdout.flush()  # a broken pipe shows here, not while the interpreter shuts down
        code = result if isinstance(result, int) else 0
    except (KeyboardInterrupt, click.Abort):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it has been heard
        with contextlib.suppress(OSError, ValueError):
            click.echo(f"{name}: interrupted", err=True)
        code = 130
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        with contextlib.suppress(OSError, ValueError):
            error.show()
        code = error.exit_code
    except ClinkerError as error:
        from clinker_spark.core.diagnostics.render import render_all, use_color  # only when there is something to say

        with contextlib.suppress(OSError, ValueError):  # the exit code tells, too
            click.echo(render_all(error.diagnostics, use_color(sys.stderr)), err=True)
        code = error.exit_code
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python must not flush into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if os.environ.get("CLINKER_DEBUG"):
            raise
        with contextlib.suppress(OSError, ValueError):
            click.echo(_internal_error(name, error), err=True)
        code = 1
    sys.exit(code)


def _internal_error(name: str, error: Exception) -> str:
    detail = f"{type(error).__name__}: {error}".strip(": ").split("\n", 1)[0]
    return (
        f"internal error in {name} {__version__}: {detail[:300]}\n"
        "This is a mistake in clinker, not in your files. Please report it with what you ran;\n"
        "run again with CLINKER_DEBUG=1 for the traceback."
    )
