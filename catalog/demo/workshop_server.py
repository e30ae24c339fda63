"""A small MCP server that ships with the project: everyday tools that need no network, files or account.

Runs over stdio, by path or as `python -m catalog.demo.workshop_server`. It imports nothing from the project.
"""

import calendar
import hashlib
import json
import re
import unicodedata
import uuid
from datetime import date, timedelta
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

HARMLESS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
LONGEST_TEXT = 100_000

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Unit = Literal[
    "mm", "cm", "m", "km", "in", "ft", "mi", "g", "kg", "oz", "lb", "ml", "l", "fl_oz", "gal", "C", "F", "K"
]

# How many of the first unit of its line one of each is: metres, grams, litres.
_LENGTHS = {
    "m": 1,
    "mm": 0.001,
    "cm": 0.01,
    "km": 1000,
    "in": 0.0254,
    "ft": 0.3048,
    "mi": 1609.344,
}
_MASSES = {"g": 1, "kg": 1000, "oz": 28.349523125, "lb": 453.59237}
_VOLUMES = {"l": 1, "ml": 0.001, "fl_oz": 0.0295735295625, "gal": 3.785411784}
# Degrees as (scale, offset) to kelvin.
_TEMPERATURES = {"K": (1.0, 0.0), "C": (1.0, 273.15), "F": (5 / 9, 459.67 * 5 / 9)}

server = MCPServer(
    name="workshop",
    title="Workshop",
    version="1.0.0",
    instructions=(
        "Everyday tools for small exact jobs: convert units, reckon with dates, count words, check and tidy "
        "JSON, make slugs, hashes and identifiers. Nothing here reads files or the network."
    ),
    log_level="WARNING",
)


class TextStatistics(BaseModel):
    characters: int
    words: int
    lines: int
    sentences: int
    reading_minutes: float


class DateResult(BaseModel):
    date: str
    weekday: str


class DateSpan(BaseModel):
    days: int
    working_days: int


@server.tool(title="Convert units", annotations=HARMLESS)
def convert_units(
    value: Annotated[float, Field(description="The number to convert")],
    from_unit: Annotated[Unit, Field(description="The unit it is in")],
    to_unit: Annotated[Unit, Field(description="The unit you want")],
) -> float:
    """Convert a measurement between metric and imperial units of length, mass, volume or temperature."""
    if from_unit in _TEMPERATURES and to_unit in _TEMPERATURES:
        scale, offset = _TEMPERATURES[from_unit]
        to_scale, to_offset = _TEMPERATURES[to_unit]
        return round((value * scale + offset - to_offset) / to_scale, 9)
    for table in (_LENGTHS, _MASSES, _VOLUMES):
        if from_unit in table and to_unit in table:
            return round(value * table[from_unit] / table[to_unit], 9)
    raise ValueError(f"{from_unit} and {to_unit} do not measure the same thing")


@server.tool(title="Add to a date", annotations=HARMLESS)
def add_to_date(
    start: Annotated[date, Field(description="As in 2026-01-31")],
    years: Annotated[int, Field(ge=-1000, le=1000)] = 0,
    months: Annotated[
        int, Field(ge=-12000, le=12000, description="A month without that day gives its last day")
    ] = 0,
    days: Annotated[int, Field(ge=-366000, le=366000)] = 0,
) -> DateResult:
    """Find the date, and its weekday, some years, months and days after a date (negative: before it)."""
    month_index = start.year * 12 + start.month - 1 + years * 12 + months
    year, month = divmod(month_index, 12)
    last_day = calendar.monthrange(year, month + 1)[1]
    result = date(year, month + 1, min(start.day, last_day)) + timedelta(days=days)
    return DateResult(date=result.isoformat(), weekday=calendar.day_name[result.weekday()])


@server.tool(title="Days between dates", annotations=HARMLESS)
def days_between(
    start: Annotated[date, Field(description="The first day, which counts")],
    end: Annotated[
        date, Field(description="The day after the last; before the start gives negative numbers")
    ],
) -> DateSpan:
    """Count the days from one date to another, and how many of them are working days, Monday to Friday."""
    sign = 1 if end >= start else -1
    first, days = min(start, end), abs((end - start).days)
    weeks, rest = divmod(days, 7)
    working = weeks * 5 + sum((first.weekday() + step) % 7 < 5 for step in range(rest))
    return DateSpan(days=sign * days, working_days=sign * working)


@server.tool(title="Text statistics", annotations=HARMLESS)
def measure_text(text: Annotated[Text, Field(description="The text to measure")]) -> TextStatistics:
    """Count the characters, words, lines and sentences of a text, and estimate how long it takes to read."""
    words = len(re.findall(r"\b[\w'’-]+\b", text))
    return TextStatistics(
        characters=len(text),
        words=words,
        lines=len(text.splitlines()),
        sentences=len(re.findall(r"[.!?…]+(?=\s|$)", text)),
        reading_minutes=round(words / 230, 1),
    )


@server.tool(title="Make a slug", annotations=HARMLESS)
def make_slug(
    text: Annotated[str, Field(max_length=1000, description="A title or heading, in any language")],
    max_length: Annotated[int, Field(ge=1, le=200)] = 80,
) -> str:
    """Turn a title into a slug for a URL or file name: lower-case ASCII letters, digits, hyphens."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")
    return slug[:max_length].rstrip("-")


@server.tool(title="Hash a text", annotations=HARMLESS)
def hash_text(
    text: Annotated[Text, Field(description="The text to hash")],
    algorithm: Literal["sha256", "sha512", "sha3_256", "blake2b"] = "sha256",
) -> str:
    """Compute the checksum (cryptographic hash) of a text in UTF-8, as hexadecimal digits."""
    return hashlib.new(algorithm, text.encode()).hexdigest()


@server.tool(title="Make UUIDs", annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def make_uuids(
    count: Annotated[int, Field(ge=1, le=100)] = 1,
    name: Annotated[str | None, Field(description="A URL or name that always gets one UUID")] = None,
) -> list[str]:
    """Make unique identifiers: random UUIDs, or the one UUID that belongs to a name."""
    if name is not None:
        return [str(uuid.uuid5(uuid.NAMESPACE_URL, name))]
    return [str(uuid.uuid4()) for _ in range(count)]


@server.tool(title="Format JSON", annotations=HARMLESS)
def format_json(
    text: Annotated[Text, Field(description="The JSON to check and format")],
    indent: Annotated[
        int, Field(ge=0, le=8, description="Spaces per level; 0 writes it all on one line")
    ] = 2,
    sort_keys: Annotated[bool, Field(description="Put the keys of each object in order")] = False,
) -> str:
    """Check that a text is JSON and write it out neatly or compactly. An error names the line and column."""
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as problem:
        raise ValueError(f"line {problem.lineno}, column {problem.colno}: {problem.msg}") from None
    separators = None if indent else (",", ":")
    return json.dumps(
        value, indent=indent or None, sort_keys=sort_keys, separators=separators, ensure_ascii=False
    )


if __name__ == "__main__":
    server.run("stdio")
