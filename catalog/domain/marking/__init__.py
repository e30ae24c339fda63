"""Marks of a definition: what an admin should look at before agents are given it.

A mark accuses nobody. It says where a definition has something that a reader may miss, or that talks to the
model and not about the tool. Every look takes time in proportion to the text, whatever the text is.
"""

from catalog.domain.marking.definition import mark_definition, mark_server, talks_to_model
from catalog.domain.marking.mark import MARK_WORDS, Mark, MarkKind

__all__ = ["MARK_WORDS", "Mark", "MarkKind", "mark_definition", "mark_server", "talks_to_model"]
