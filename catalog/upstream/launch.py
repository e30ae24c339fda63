"""Checks what a stdio definition may run, and builds its environment."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.domain.connection import Connection, FailureCode, StdioRules, UpstreamFailure

INHERITED_VARIABLES = ("PATH", "HOME")
LOADER_PREFIXES = ("LD_", "DYLD_")
LOADER_VARIABLES = frozenset(
    (
        *("PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "NODE_OPTIONS", "NODE_PATH"),
        *("BASH_ENV", "ENV", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT", "JAVA_TOOL_OPTIONS"),
    )
)


@dataclass(frozen=True, slots=True, repr=False)
class Launch:
    """A program with its arguments and its whole environment, ready to run."""

    executable: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None


def prepare_launch(connection: Connection, rules: StdioRules, environment: Mapping[str, str]) -> Launch:
    """Check the rules and find the program. Raises UpstreamFailure that names what is not allowed."""
    _check_rules(connection, rules)
    texts = (connection.command, *connection.args, *connection.env, *connection.env.values(), connection.cwd)
    if "\0" in "".join(texts):
        raise _not_allowed("The command, its arguments or its variables hold a NUL character")
    inherited = {name: environment[name] for name in INHERITED_VARIABLES if name in environment}
    env = {**inherited, **connection.env}
    cwd = _find_folder(connection.cwd)
    command = connection.command
    if cwd and os.path.dirname(command):
        command = os.path.join(cwd, command)
    executable = shutil.which(command, path=env.get("PATH"))
    if executable is None:
        raise UpstreamFailure(
            FailureCode.COMMAND_NOT_FOUND,
            f"The command {connection.command} was not found where the worker runs: "
            "install it there, or give its full path",
        )
    return Launch(os.path.abspath(executable), connection.args, env, cwd)


def _find_folder(cwd: str) -> str | None:
    if cwd and not os.path.isdir(cwd):
        raise UpstreamFailure(
            FailureCode.FOLDER_NOT_FOUND,
            f"The folder {cwd} was not found where the worker runs: create it there, or give another",
        )
    return cwd or None


def _check_rules(connection: Connection, rules: StdioRules) -> None:
    if not rules.enabled:
        raise _not_allowed("Servers that run a command are turned off here")
    if rules.allowed_commands is not None and connection.command not in rules.allowed_commands:
        raise _not_allowed(f"The command {connection.command} is not on the list of allowed commands")
    loaders = sorted(_loader_variables(connection.env))
    if loaders and rules.refuses_loader_variables:
        raise _not_allowed(f"The variable {loaders[0]} changes which code a command runs: remove it")


def _loader_variables(names: Iterable[str]) -> Iterable[str]:
    return (name for name in names if name in LOADER_VARIABLES or name.startswith(LOADER_PREFIXES))


def _not_allowed(message: str) -> UpstreamFailure:
    return UpstreamFailure(FailureCode.STDIO_NOT_ALLOWED, message)
