"""Exports the tools of a filter as CSV or JSON."""

from dataclasses import asdict, fields

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, require_role
from catalog.console.downloads import send_csv, send_json
from catalog.forms.filters import ToolFilterForm
from catalog.selectors.exports import ExportRow, export_rows


@require_GET
def tools_csv(request: HttpRequest) -> HttpResponseBase:
    require_role(request.user, Role.VIEWER)
    rows = export_rows(ToolFilterForm(request.GET).wanted())
    columns = [field.name for field in fields(ExportRow)]
    return send_csv("tools.csv", columns, ({**asdict(row), "tags": ", ".join(row.tags)} for row in rows))


@require_GET
def tools_json(request: HttpRequest) -> HttpResponseBase:
    require_role(request.user, Role.VIEWER)
    rows = export_rows(ToolFilterForm(request.GET).wanted())
    return send_json("tools.json", (asdict(row) for row in rows))
