"""Marks of a definition: warnings for an admin before agents are given it.

A mark is no accusation. It shows where a definition has something that people may overlook, or that addresses
the model instead of describing the tool. Every check takes linear time.
"""

from catalog.domain.marking.definition import is_marked, mark_definition, mark_server, talks_to_model
from catalog.domain.marking.mark import MARK_WORDS, Mark, MarkKind

__all__ = ["MARK_WORDS", "Mark", "MarkKind", "is_marked", "mark_definition", "mark_server", "talks_to_model"]
