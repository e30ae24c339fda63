"""The Models page: which models search deferred tools themselves, their context windows and prices."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from catalog.access.roles import Role, require_role, role_required
from catalog.console.pages import actor_of_request, render_page, tell_done, way_back
from catalog.domain.errors import Conflict, InvalidInput, OutdatedEdit
from catalog.forms.models import ModelForm
from catalog.models import ModelSupport
from catalog.selectors import models
from catalog.services import model_support
from catalog.views import edit_conflicts
from catalog.views.edit_conflicts import EditConflict

PRICED_MODEL_COOKIE = "priced_model"
A_YEAR_SECONDS = 365 * 24 * 3600


@require_http_methods(["GET", "POST"])
@role_required(Role.VIEWER)
def model_list(request: HttpRequest) -> HttpResponse:
    """GET shows the table and the row that applies to the name asked for; POST adds a row."""
    if request.method != "POST":
        return _show_table(request, ModelForm())
    require_role(request.user, Role.ADMIN)
    form = ModelForm(request.POST)
    if form.is_valid() and _save(request, form, None):
        return redirect("model_list")
    return _show_table(request, form, status=422)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def model_edit(request: HttpRequest, model_id: int) -> HttpResponse:
    row = models.find_model(model_id)
    if request.method != "POST":
        return _show_table(request, ModelForm.of(row), edited=row)
    form = ModelForm(request.POST)
    try:
        if form.is_valid() and _save(request, form, row):
            return redirect("model_list")
    except OutdatedEdit as outdated:
        return _show_conflict(request, models.find_model(model_id), form, outdated)
    return _show_table(request, form, edited=row, status=422)


@require_POST
@role_required(Role.ADMIN)
def model_delete(request: HttpRequest, model_id: int) -> HttpResponse:
    row = models.find_model(model_id)
    change = model_support.delete_model(model_id=model_id, actor=actor_of_request(request))
    tell_done(request, f"The row for {row.name_pattern} is deleted.", change)
    return redirect("model_list")


@require_POST
@role_required(Role.VIEWER)
def model_choose(request: HttpRequest) -> HttpResponse:
    """Stores in a cookie which model's prices pages show to this browser."""
    response = redirect(way_back(request, otherwise="overview"))
    wanted = request.POST.get("model", "")
    if any(str(row.pk) == wanted for row in models.choose_prices(wanted).models):
        response.set_cookie(
            PRICED_MODEL_COOKIE,
            wanted,
            max_age=A_YEAR_SECONDS,
            samesite="Lax",
            secure=request.is_secure(),
            httponly=True,
        )
    return response


def _save(request: HttpRequest, form: ModelForm, row: ModelSupport | None) -> bool:
    """False where the service refuses a value; the form then shows which. Raises OutdatedEdit."""
    try:
        saved = model_support.save_model(
            **form.values(),
            actor=actor_of_request(request),
            model_id=row.pk if row else None,
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    except Conflict as conflict:
        form.add_error("name_pattern", f"{str(conflict).capitalize()}.")
        return False
    tell_done(request, f"Saved the row for {saved.row.name_pattern}.", saved.change)
    return True


def _show_conflict(
    request: HttpRequest, row: ModelSupport, form: ModelForm, outdated: OutdatedEdit
) -> HttpResponse:
    """The form with the current version, so that saving again is deliberate."""
    present = ModelForm.of(row)
    conflict = edit_conflicts.merge_form(
        request,
        outdated,
        wanted={**form.values(), "provider": str(form.cleaned_data["provider"])},
        present=present,
        label_of=lambda field: str(present[field].label),
    )
    return _show_table(request, ModelForm(conflict.data), edited=row, conflict=conflict, status=409)


def _show_table(
    request: HttpRequest,
    form: ModelForm,
    *,
    edited: ModelSupport | None = None,
    conflict: EditConflict | None = None,
    status: int = 200,
) -> HttpResponse:
    rows = models.models_for_table()
    opened_with = edit_conflicts.version_in(request, model_support.version_of(edited)) if edited else ""
    name = request.GET.get("model", "").strip()
    context = {
        "rows": rows,
        "form": form,
        "edited": edited,
        "conflict": conflict,
        "version": conflict.version if conflict else opened_with,
        "name": name,
        "counting": models.row_that_counts(name, rows),
    }
    page, part = "catalog/model_list.html", "catalog/_model_table.html"
    return render_page(request, page, part, context, status=status)
