"""Reads the text of a config file, whatever it is written in: JSON, JSON with comments, TOML, YAML, shell
lines.

A text becomes a tree of objects, lists and values here; `catalog/domain/dialects/` makes servers of it.
Everything is bounded: only strict JSON may be large, nesting has an end, and YAML may not refer to itself.
"""

import re
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator

import yaml

from catalog.domain import dialects
from catalog.domain.dialects import Config
from catalog.domain.errors import InvalidInput
from catalog.domain.json_text import read_json
from catalog.domain.limits import CONFIG_BODY_BYTES, CONFIG_LEVELS, CONFIG_TEXT_BYTES, CONFIG_TOML_DOTS
from catalog.domain.values import is_storable

# A text in quotes is stepped over; what is cut short ends with the file, so that nothing is read twice.
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')
_NOT_A_LINE_END = re.compile(r"[^\n]")
_TOML_LIKE = re.compile(r"^\s*(?:\[[^\]\n]+\]\s*(?:#.*)?|[\w.\"'-]+\s*=.*)$", re.MULTILINE)
_FAST_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KNOWN = "JSON (comments and trailing commas are read), TOML, YAML, or a line such as `claude mcp add …`"


def read_config_text(content: str | bytes) -> Config:
    """The servers and settings of a text. Raises InvalidInput where it cannot be read or holds none."""
    size = len(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    if size > CONFIG_BODY_BYTES:
        raise InvalidInput.at("", f"has more than {CONFIG_BODY_BYTES // 2**20} MiB")
    try:
        tree = read_json(content)
    except InvalidInput as invalid:
        if size > CONFIG_TEXT_BYTES:
            most = f"only strict JSON may have more than {CONFIG_TEXT_BYTES // 1024} KiB"
            raise InvalidInput.at(invalid.errors[0].place, f"{invalid.errors[0].message}; {most}") from None
        return _read_text(decode_text(content), invalid)
    if isinstance(tree, str):  # an address or a line that was pasted with its quotes
        return _read_text(tree, InvalidInput.at("", f"the file must hold an object, not text: {KNOWN}"))
    check_tree(tree)
    return dialects.read_config(tree)


def check_tree(tree: object) -> None:
    """Raises InvalidInput for a tree that is too deep, or has a text that no database stores."""
    level: list[object] = [tree]
    for _ in range(CONFIG_LEVELS):
        texts = (text for one in level for text in _texts_in(one))
        if not all(map(is_storable, texts)):
            raise InvalidInput.at("", "holds NUL or half a character, which cannot be stored")
        level = [below for one in level for below in _below(one)]
        if not level:
            return
    raise InvalidInput.at("", f"is nested deeper than {CONFIG_LEVELS} levels")


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (key for key in value if isinstance(key, str))


def _below(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def decode_text(content: str | bytes) -> str:
    """Raises InvalidInput for bytes that are neither UTF-8 nor marked as UTF-16."""
    if isinstance(content, str):
        return content.removeprefix("\ufeff")
    encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput.at(f"byte {error.start}", "is not UTF-8") from None


def _read_text(text: str, invalid_json: InvalidInput) -> Config:
    if not text.strip():
        raise InvalidInput.at("", f"is empty: {KNOWN}")
    if not is_storable(text):
        raise InvalidInput.at("", "holds NUL or half a character, which cannot be stored")
    if lines := dialects.read_lines(text):
        return lines
    tree = _read_tree(text, invalid_json)
    check_tree(tree)
    return dialects.read_config(tree)


def _read_tree(text: str, invalid_json: InvalidInput) -> object:
    plain = _blank_comments(text)
    start = plain.lstrip()[:1]
    if start == "{":
        return _read_jsonc(plain)
    if start == '"' and ":" in plain:  # a part of an object, as documentation shows it
        return _read_jsonc(f"{{{plain}}}")
    if _TOML_LIKE.search(text):
        return _read_toml_or_yaml(text)
    if start == "[":
        return _read_jsonc(plain)
    tree = _read_yaml(text)
    if isinstance(tree, dict):
        return tree
    told = invalid_json.errors[0]
    raise InvalidInput.at(told.place, f"{told.message}; a config is {KNOWN}")


def _read_toml_or_yaml(text: str) -> object:
    """A line of a longer text in YAML may look like TOML."""
    try:
        return _read_toml(text)
    except InvalidInput as invalid_toml:
        try:
            tree = _read_yaml(text)
        except InvalidInput:
            tree = None
        if isinstance(tree, dict):
            return tree
        raise invalid_toml from None


def _blank_comments(text: str) -> str:
    """Comments become blanks, so that lines and columns stay."""
    return _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else _blank(found[0]), text)


def _blank(text: str) -> str:
    return _NOT_A_LINE_END.sub(" ", text)


def _read_jsonc(plain: str) -> object:
    return read_json(_TRAILING_COMMA.sub(lambda found: found[0] if found[0][0] == '"' else " ", plain))


def _read_toml(text: str) -> object:
    # The parser's work grows with the square of the parts of a dotted key.
    if any(line.count(".") > CONFIG_TOML_DOTS for line in text.splitlines()):
        raise InvalidInput.at("", "invalid TOML: nested too deeply")
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise InvalidInput.at("", "invalid TOML: nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and Python's own of a number with too many digits
        raise InvalidInput.at("", f"invalid TOML: {str(error)[:200]}") from None


def _read_yaml(text: str) -> object:
    try:
        _check_events(text)
        return _text_keys(yaml.load(text, Loader=_FAST_YAML))  # noqa: S506  a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1} column {mark.column + 1}" if mark else ""
        raise InvalidInput.at(place, f"invalid YAML: {error.problem}; a config is {KNOWN}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        raise InvalidInput.at("", f"is no config that can be read: a config is {KNOWN}") from None


def _check_events(text: str) -> None:
    """Looks for what could grow or run without end, before anything is built."""
    depth = 0
    for event in yaml.parse(text, Loader=_FAST_YAML):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidInput.at(_line_of(event), "invalid YAML: aliases (*name) are not read")
        if getattr(event, "tag", None):
            raise InvalidInput.at(_line_of(event), "invalid YAML: tags (!name) are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > CONFIG_LEVELS:
            raise InvalidInput.at("", f"is nested deeper than {CONFIG_LEVELS} levels")


def _line_of(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark else ""


def _text_keys(value: object) -> object:
    """The tree with every key as text: YAML reads `8080:` as a number."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _text_keys(below) for key, below in value.items()}
    return [_text_keys(below) for below in value] if isinstance(value, list) else value
