"""Rows as a CSV or JSON file, sent while they are read."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from django.http import HttpResponseBase, StreamingHttpResponse

# A spreadsheet takes a cell that begins with one of these for a formula, and runs it.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
Row = Mapping[str, object]


class _Line:
    """A file for the csv module that returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


def send_csv(name: str, columns: Sequence[str], rows: Iterable[Row]) -> HttpResponseBase:
    return _send(name, "text/csv; charset=utf-8", _write_csv(columns, rows))


def send_json(name: str, rows: Iterable[Row]) -> HttpResponseBase:
    return _send(name, "application/json", _write_json(rows))


def _send(name: str, content_type: str, text: Iterator[str]) -> HttpResponseBase:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(text, content_type=content_type, headers=headers)


def _write_csv(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_disarm(row[column]) for column in columns])


def _write_json(rows: Iterable[Row]) -> Iterator[str]:
    separator = "[\n"
    for row in rows:
        yield separator + json.dumps(row, ensure_ascii=False)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _disarm(value: object) -> object:
    is_formula = isinstance(value, str) and value.startswith(FORMULA_SIGNS)
    return f"'{value}" if is_formula else value
