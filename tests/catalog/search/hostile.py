"""Texts that nobody types by accident: operators, half characters, other scripts, regex bombs."""

import random

PIECES = (
    *"+-*?()[]{}|^$.\\\"'`,:;/<>=!&%#@~_ \t\n\x00",
    *"azAZ09éßİıЖ使検한ﬁ🙂",
    "\ud800", "\u200b", "\u0301", "\ufeff", "\u202e", "𝒳",
    "select:", "select:,", "+", "++slack", "+!", "NOT ", " AND ", " OR ", "name:", "*:*", "[a TO b]", "~2",
    "create_issue", "mcp__github__create_issue", "`Read`", "issue", "the", "of", "me", "comment", "GitHub",
    "(a+)+", "(a|aa)*", "(.*)*", "(?=", "(?<!", "\\1", "(?P<x>", "{1,999}", "[^", "(?i)", "a" * 80, "9" * 40,
)  # fmt: skip


def make_text(random_source: random.Random) -> str:
    length = random_source.choice((1, 2, 3, 5, 8, 20, 60))
    return "".join(random_source.choices(PIECES, k=length))
