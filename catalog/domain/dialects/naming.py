"""Names for servers that a file gives without one: from the package, image, script or host."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

_RUNNERS = frozenset({"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "bun", "uv", "deno", "npm"})
_RUNNER_WORDS = frozenset({"run", "dlx", "exec", "x", "tool"})
_PACKAGE_OPTIONS = frozenset({"-p", "--package", "--from"})
_RUNNER_VALUES = _PACKAGE_OPTIONS | {"--with", "--python", "--registry", "--directory", "--index-url"}
_CONTAINERS = frozenset({"docker", "podman"})
_CONTAINER_VALUES = frozenset(
    (
        *("-e", "--env", "--env-file", "-v", "--volume", "--mount", "-p", "--publish", "--name"),
        *(
            "--network",
            "--net",
            "--entrypoint",
            "-w",
            "--workdir",
            "-u",
            "--user",
            "--add-host",
            "--platform",
        ),
        *("--pull", "-l", "--label", "-m", "--memory", "--cpus", "-h", "--hostname", "--gpus", "--restart"),
        *("--security-opt", "--cap-add"),
    )
)
_SCRIPT_ENDINGS = frozenset({"py", "js", "mjs", "cjs", "ts"})
_VERSION = re.compile(r"(?<=.)(?:@[^/@]*|[=<>~!]=.*|\[.*\])$")
_DECORATION = re.compile(
    r"^(?:mcp-server-|server-mcp-|mcp-|server-)|(?:-mcp-server|-server-mcp|-mcp|-server)$"
)
_SEPARATOR = re.compile(r"[\\/]+")
_COMMON_LABELS = frozenset({"mcp", "www", "api", "app", "server"})  # of hosts


def name_server(entry: Mapping[str, object]) -> str:
    """A name for the server of an entry in our keys."""
    url, args = entry.get("url"), entry.get("args")
    if isinstance(url, str) and url:
        return _name_by_host(url)
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list | tuple) else []
    return _name_by_package(str(entry.get("command") or ""), words)


def last_part(path: str) -> str:
    """The last part of a path with slashes of either kind."""
    return _SEPARATOR.split(path.rstrip("\\/"))[-1]


def passed_variables(args: Sequence[str]) -> list[str]:
    """Variables that `docker run` is to pass on from its own environment: `-e NAME` without a value."""
    options = itertools.pairwise(args)
    return [name for option, name in options if option in {"-e", "--env"} and name.isidentifier()]


def _name_by_host(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    labels = host.split(".")
    if not host or ":" in host or all(label.isdigit() for label in labels):
        return host or "server"
    own = labels[:-1] if len(labels) > 1 else labels
    telling = [label for label in own if label not in _COMMON_LABELS]
    return (telling or own)[-1] or "server"


def _name_by_package(command: str, args: list[str]) -> str:
    program = last_part(command).removesuffix(".exe").removesuffix(".cmd")
    if program in _CONTAINERS:
        image = _first_word(args, _CONTAINER_VALUES, but={"run", "container"})
        return _shorten(image.partition("@")[0].rpartition("/")[2].partition(":")[0]) or program
    if program in _RUNNERS:
        pairs = itertools.pairwise(args)
        named = next((later for option, later in pairs if option in _PACKAGE_OPTIONS), "")
        package = named or _first_word(args, _RUNNER_VALUES, but=_RUNNER_WORDS)
        return _shorten(_VERSION.sub("", package).rpartition("/")[2]) or program
    if program.startswith(("python", "node")):
        return _name_by_script(_first_word(args, (), but={"run"})) or program
    return _shorten(program) or "server"


def _name_by_script(script: str) -> str:
    """`server.py` or `/x/weather.js` by its file, `package.module` by its last part."""
    stem, _, ending = last_part(script).rpartition(".")
    return _shorten((stem if ending in _SCRIPT_ENDINGS else ending).replace("_", "-"))


def _first_word(args: Sequence[str], with_value: Collection[str], *, but: Collection[str]) -> str:
    """The first argument that is no option, no option's value, and none of the runner's own words."""
    before = ""
    for arg in args:
        if not arg.startswith("-") and before not in with_value and arg not in but:
            return arg
        before = arg
    return ""


def _shorten(name: str) -> str:
    """Without what every server has in its name."""
    return _DECORATION.sub("", name) or name
