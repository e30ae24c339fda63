"""Finds the line of a program's stderr that says why it ended."""

import re

_NPM = re.compile(r"npm (?:error|ERR!) ?(.*)")
# Of npm's report: keys with a value each, and where the log is.
_NPM_DETAIL = re.compile(
    r"(?:\d{3})?$|(?:code|errno|syscall|path|dest|command|cwd|signal)\b"
    r"|A complete log of this run|.*-debug-\d+\.log"
)
# uv draws a tree, and breaks its lines.
_BRANCH = re.compile(r"[╰└]─▶ ?(.+)", re.DOTALL)
# What follows the message: frames, fields and brackets of an error in Node.js, hints how to get help.
_AFTERWARDS = re.compile(
    r"at \S|Node\.js v\d|[\]\[{}()^~\s,]*$|(?:code|errno|syscall|path|address|port|requireStack)\b: "
    r"|(?:See|Run|Try) '|For more (?:information|help)"
)


def find_telling_line(stderr: str) -> str:
    """The line that tells what was wrong; empty where nothing was written."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    npm = [found[1].strip() for line in lines if (found := _NPM.match(line))]
    if telling := next((text for text in npm if not _NPM_DETAIL.match(text)), ""):
        return telling
    if branch := _BRANCH.search(stderr):
        return " ".join(branch[1].split())
    telling_lines = (line for line in reversed(lines) if not _AFTERWARDS.match(line))
    return next(telling_lines, lines[-1] if lines else "")
