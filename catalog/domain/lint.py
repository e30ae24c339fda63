"""Lints a tool's definition: what makes it hard to find or to use, and how to fix it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from catalog.domain import schema_lint
from catalog.domain.definitions import Definition
from catalog.domain.sizes import compact_json, tokens_of
from catalog.domain.verbs import has_verb

SHORT_NAME_CHARS = 3
SHORT_DESCRIPTION_WORDS = 4
LARGE_SHARE = 0.1
LARGE_TOKENS = 250
ALIKE_SHARE = 0.8
LATIN_SHARE = 0.9
NAMES_SHOWN = 3
_WORD = re.compile(r"[^\W\d_]+|\d+")
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|\n")


class LintTarget(StrEnum):
    NAME = "name"
    DESCRIPTION = "description"
    SCHEMA = "schema"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class SimilarTool:
    """Another tool of the catalog that a search for this one finds too."""

    label: str  # `server/tool`, for the reader
    qualified_name: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class LintIssue:
    """`finding` is the problem, `remedy` the fix. `is_rejected`: a model API refuses the tool."""

    part: LintTarget
    finding: str
    remedy: str
    is_rejected: bool = False
    others: tuple[SimilarTool, ...] = ()  # the tools to look at beside it


@dataclass(frozen=True, slots=True)
class LintContext:
    """The tool within the catalog: similar tools, and how many tools are larger."""

    neighbours: tuple[SimilarTool, ...] = ()
    larger: int = 0
    tools: int = 0


def lint_definition(definition: Definition, around: LintContext) -> tuple[LintIssue, ...]:
    """Problems that make a model API refuse the tool come first."""
    found = [
        *_lint_schema(definition),
        *_lint_name(definition, around),
        *_lint_description(definition, around),
        *_lint_size(definition, around),
    ]
    return tuple(sorted(found, key=lambda issue: not issue.is_rejected))


def name_words(name: str) -> list[str]:
    """`createIssue`, `create_issue` and `create-issue` are the same words."""
    return [word.lower() for word in _NAME_WORD.findall(name)]


def have_same_name(one: str, other: str) -> bool:
    words = sorted(name_words(one))
    return bool(words) and words == sorted(name_words(other))


def are_alike(one: str, other: str) -> bool:
    """Whether two descriptions have nearly the same words; false where there are too few words to tell."""
    ours, theirs = set(_words(one)), set(_words(other))
    if min(len(ours), len(theirs)) < SHORT_DESCRIPTION_WORDS:
        return False
    return len(ours & theirs) / len(ours | theirs) >= ALIKE_SHARE


def _lint_name(definition: Definition, around: LintContext) -> Iterable[LintIssue]:
    words = name_words(definition.name)
    if len(definition.name) <= SHORT_NAME_CHARS:
        yield LintIssue(
            LintTarget.NAME,
            "The name is too short to say what the tool does.",
            "Nobody searches for it by that. Add the words people would use as keywords.",
        )
    elif _is_latin(definition.name) and not has_verb(words):
        yield LintIssue(
            LintTarget.NAME,
            "No word of the name says what the tool does.",
            "A verb and its object are found best, such as list_orders. Add the verb as a keyword.",
        )
    namesakes = [near for near in around.neighbours if have_same_name(definition.name, near.name)]
    if namesakes:
        yield LintIssue(
            LintTarget.NAME,
            f"It has the same name as {_tell([near.label for near in namesakes])}.",
            "A search for the name finds all of them. Say by keywords what sets this one apart, "
            "or hide those that agents do not need.",
            others=tuple(namesakes[:NAMES_SHOWN]),
        )


def _lint_description(definition: Definition, around: LintContext) -> Iterable[LintIssue]:
    words = _words(definition.description)
    if not words:
        yield LintIssue(
            LintTarget.DESCRIPTION,
            "There is no description.",
            "Only the name and the parameters can be searched for. Add keywords that say what it is for.",
        )
        return
    is_latin = _is_latin(definition.description)
    if is_latin and (len(words) < SHORT_DESCRIPTION_WORDS or set(words) <= set(name_words(definition.name))):
        yield LintIssue(
            LintTarget.DESCRIPTION,
            "The description is too short to tell more than the name.",
            "Ask its author to say what it returns and when to use it. Until then, add keywords.",
        )
    elif is_latin and not has_verb(_words(_first_sentence(definition.description))):
        yield LintIssue(
            LintTarget.DESCRIPTION,
            "Its first sentence has no verb that says what the tool does.",
            "Only the first sentence is shown while the tool is deferred. Add the verb as a keyword, "
            "and ask its author to begin with it.",
        )
    alike = [near for near in around.neighbours if are_alike(definition.description, near.description)]
    if alike:
        yield LintIssue(
            LintTarget.DESCRIPTION,
            f"It says nearly the same as {_tell([near.label for near in alike])}.",
            "A model cannot tell them apart. Hide the one that is not needed, or add keywords to both.",
            others=tuple(alike[:NAMES_SHOWN]),
        )


def _lint_schema(definition: Definition) -> Iterable[LintIssue]:
    for problem in schema_lint.find_rejections(definition.input_schema):
        yield LintIssue(LintTarget.SCHEMA, problem.finding, problem.remedy, is_rejected=True)
    bare = schema_lint.parameters_without_description(definition.input_schema)
    if bare:
        yield LintIssue(
            LintTarget.SCHEMA,
            f"The parameter{'' if len(bare) == 1 else 's'} {_tell(bare)} "
            f"{'has' if len(bare) == 1 else 'have'} no description.",
            "A model has to guess what to pass, and a search cannot find the tool by it. "
            "Ask its author to describe each parameter in a few words.",
        )


def _lint_size(definition: Definition, around: LintContext) -> Iterable[LintIssue]:
    tokens = definition.size.tokens
    if tokens < LARGE_TOKENS or not around.tools or around.larger / around.tools >= LARGE_SHARE:
        return
    schema = tokens_of(len(compact_json(definition.input_schema)))
    where = "its schema" if schema * 2 >= tokens else "its description"
    share = (
        f"{around.larger:,} of {around.tools:,} tools are larger" if around.larger else "No tool is larger"
    )
    yield LintIssue(
        LintTarget.SIZE,
        f"It is larger than most: {share}.",
        f"Most of its {tokens:,} tokens are {where}. Deferred, it costs them only once a search finds it.",
    )


def _tell(names: list[str]) -> str:
    shown, left = names[:NAMES_SHOWN], len(names[NAMES_SHOWN:])
    if left:
        return f"{', '.join(shown)} and {left:,} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0]


def _is_latin(text: str) -> bool:
    """Only Latin script separates words by spaces and uses the verbs known here."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(letter.isascii() for letter in letters) >= LATIN_SHARE * len(letters)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
