"""Exports the tools of a filter as CSV or JSON."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, require_role
from catalog.forms.filters import ToolFilterForm
from catalog.selectors.exports import ExportRow, export_rows

# A spreadsheet takes a cell that begins with one of these for a formula, and runs it.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
ExportWriter = Callable[[Iterable[ExportRow]], Iterator[str]]


class _Line:
    """A file for the csv module that returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


@require_GET
def tools_csv(request: HttpRequest) -> HttpResponseBase:
    return _answer(request, "tools.csv", "text/csv; charset=utf-8", _write_csv)


@require_GET
def tools_json(request: HttpRequest) -> HttpResponseBase:
    return _answer(request, "tools.json", "application/json", _write_json)


def _answer(request: HttpRequest, name: str, content_type: str, write: ExportWriter) -> HttpResponseBase:
    require_role(request.user, Role.VIEWER)
    rows = export_rows(ToolFilterForm(request.GET).wanted())
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(write(rows), content_type=content_type, headers=headers)


def _write_csv(rows: Iterable[ExportRow]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow([field.name for field in fields(ExportRow)])
    for row in rows:
        values = {**asdict(row), "tags": ", ".join(row.tags)}
        yield writer.writerow([_disarm(value) for value in values.values()])


def _write_json(rows: Iterable[ExportRow]) -> Iterator[str]:
    separator = "[\n"
    for row in rows:
        yield separator + json.dumps(asdict(row), ensure_ascii=False)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _disarm(value: object) -> object:
    is_formula = isinstance(value, str) and value.startswith(FORMULA_SIGNS)
    return f"'{value}" if is_formula else value
