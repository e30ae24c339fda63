"""Cuts JSON that is nested deeper than the client's parser accepts.

The parser would refuse the whole message, and one deep schema would cost all tools of the listing. A cut
definition is still deeper than allowed, so that tool alone is rejected, with its reason.
"""

import re

from catalog.domain.limits import MESSAGE_BRACKETS, MESSAGE_LEVELS

# Up to the next bracket outside of strings, to a string that does not end, or to the end.
_TO_NEXT_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}]|\Z)', re.DOTALL)


def cut_nesting(message: bytes) -> bytes:
    """The message with null in place of what is deeper than `MESSAGE_LEVELS`; nearly always unchanged.

    Unchanged too where it is not JSON, or has more than `MESSAGE_BRACKETS`: the parser decides.
    """
    opening = message.count(b"{") + message.count(b"[")
    closing = message.count(b"}") + message.count(b"]")
    if opening <= MESSAGE_LEVELS or opening + closing > MESSAGE_BRACKETS:
        return message
    level, kept_from = 0, 0
    kept: list[bytes] = []
    for token in _TO_NEXT_BRACKET.finditer(message):
        sign = token[1]
        if sign in (b"{", b"["):
            level += 1
            if level == MESSAGE_LEVELS + 1:
                kept.append(message[kept_from : token.start(1)])
        elif sign in (b"}", b"]"):
            if level == MESSAGE_LEVELS + 1:
                kept.append(b"null")
                kept_from = token.end()
            level -= 1
        elif sign == b'"':
            return message
    return message if level else b"".join([*kept, message[kept_from:]])
