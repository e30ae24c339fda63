"""Text that talks to the model. Each pattern is tried only where one of its plain words is in the text.

No pattern repeats without a bound, so the time is in proportion to the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NEAR = r"[^.!?\n]{0,40}?"


@dataclass(frozen=True, slots=True)
class Wording:
    """`words` in small letters: without any of them the pattern cannot match."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]

    def find(self, text: str, lowered: str) -> Iterator[re.Match[str]]:
        if any(word in lowered for word in self.words):
            yield from self.pattern.finditer(text)


def _wording(words: str, pattern: str) -> Wording:
    """`words` with a comma between them."""
    return Wording(tuple(words.split(",")), re.compile(pattern, re.IGNORECASE | re.MULTILINE))


INSTRUCTIONS: tuple[Wording, ...] = (
    # what came before no longer holds
    _wording(
        "ignor,disregard,forget,overrid,bypass",
        rf"\b(?:ignor(?:e|es|ing)|disregard(?:s|ing)?|forget(?:ting)?|overrid(?:e|es|ing)|bypass(?:es|ing)?)\b{_NEAR}"
        rf"\b(?:previous|prior|above|earlier|preceding|original|system|safety|your)\b{_NEAR}"
        r"\b(?:instruction|prompt|rule|message|guideline|direction|restriction|polic|training)",
    ),
    _wording(
        "instruction,prompt",
        r"\b(?:new|updated|hidden|secret|real|actual)\s{1,3}(?:system\s{1,3})?"
        r"(?:instructions?|prompt)\s{0,3}:",
    ),
    # keep it from the user
    _wording(
        "tell,mention,inform,reveal,notify,alert,disclos,say,show",
        r"\b(?:do\s{1,3}not|don['’]?t|never|must\s{1,3}not|without|avoid)\s{1,3}(?:ever\s{1,3})?"
        r"(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|reveal(?:ing)?|notify(?:ing)?|alert(?:ing)?"
        rf"|disclos(?:e|ing)|say(?:ing)?|show(?:ing)?)\b{_NEAR}\b(?:users?|humans?|operators?|anyone|anybody)\b",
    ),
    _wording(
        "secretly,silently,covertly",
        r"\b(?:secretly|covertly|silently\s{1,3}(?:send|read|copy|call|add|include))\b",
    ),
    _wording(
        "important,critical,mandatory,urgent",
        r"\b(?:important|critical|mandatory|urgent)\b[^.?\n]{0,20}?\b(?:you|assistants?|models?|agents?)\s{1,3}"
        r"(?:must|have\s{1,3}to|need\s{1,3}to|are\s{1,3}required)\b",
    ),
    # who the model is
    _wording("you", r"\byou(?:\s{1,3}are|['’]re)\s{1,3}(?:now\s{1,3}(?:a|an|the|in)|no\s{1,3}longer)\b"),
    _wording("pretend", r"\bpretend\s{1,3}(?:to\s{1,3}be|that\s{1,3}you|you\s{1,3}are)\b"),
    # a part of the conversation that is not the server's to write
    _wording(
        "<",
        r"<\s{0,3}/?\s{0,3}(?:important|critical|system|system-reminder|instructions?|assistant)\s{0,3}>",
    ),
    _wording("<|", r"<\|[a-z_]{2,24}\|>"),
    _wording("inst],system]", r"\[/?(?:inst|system)\]"),
    _wording("system:,assistant:,human:", r"^[\s#*>]{0,6}(?:system|assistant|human):\s"),
    # other tools and other people's files
    _wording(
        "before,instead,prior",
        r"\b(?:before|instead\s{1,3}of|prior\s{1,3}to)\s{1,3}(?:using|calling|invoking|running|executing)\s{1,3}"
        r"(?:any|all|every|each)(?:\s{1,3}(?:of\s{1,3}the|other|another)){0,2}\s{1,3}(?:tools?|functions?|actions?)\b",
    ),
    _wording(
        ".ssh,id_rsa,id_ed25519,/etc/passwd,/etc/shadow,.aws/credentials,.cursor/mcp,.netrc",
        r"(?:~|/home/\S{1,40}|/root)?/?\.ssh/|\bid_(?:rsa|ed25519)\b|/etc/(?:passwd|shadow)\b|\.aws/credentials"
        r"|\.cursor/mcp|~/\.netrc\b",
    ),
    _wording(
        "conversation,chat,history,context,password,credential,api,token",
        r"\b(?:send|forward|upload|post|copy|pass|include|append|exfiltrate|leak)\b[^.!?\n]{0,30}?"
        r"\b(?:(?:whole|full|entire|complete)\s{1,3}(?:conversation|chat|history|context)"
        r"|conversation\s{1,3}history|(?:user|customer)['’]s\s{1,3}(?:password|credentials?|api\s{1,3}keys?|tokens?))\b",
    ),
)

MARKUP: tuple[Wording, ...] = (
    _wording(
        "<",
        r"<\s{0,3}/?\s{0,3}(?:script|iframe|img|svg|style|object|embed|form|link|meta|base|input|video|audio"
        r"|body|html|frame|applet)\b[^<>\n]{0,200}>?",
    ),
    _wording("<!--", r"<!--"),
    _wording("javascript:", r"\bjavascript:"),
    _wording("![", r"!\[[^\]\n]{0,80}\]\(\s{0,3}(?:https?:)?//"),
)
