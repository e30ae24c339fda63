"""The table of models: which of them search deferred tools themselves, and how much context they have."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from catalog.access import Role, require_role, role_required
from catalog.domain.errors import Conflict, InvalidInput, OutdatedEdit
from catalog.forms.models import ModelForm
from catalog.models import ModelSupport
from catalog.models.changes import Subject
from catalog.selectors import changes, models
from catalog.services import model_support
from catalog.views import edit_conflicts
from catalog.views.edit_conflicts import EditConflict
from catalog.views.pages import actor_of, render_page


@require_http_methods(["GET", "POST"])
@role_required(Role.VIEWER)
def model_list(request: HttpRequest) -> HttpResponse:
    """GET shows the table, and under which row the name asked for falls; POST adds a row."""
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
    model_support.delete_model(model_id=model_id, actor=actor_of(request))
    _tell(request, f"The row for {row.name_pattern} is deleted.", row.name_pattern)
    return redirect("model_list")


def _save(request: HttpRequest, form: ModelForm, row: ModelSupport | None) -> bool:
    """False where the service refuses a value; the form then says which. Raises OutdatedEdit."""
    try:
        saved = model_support.save_model(
            **form.values(),
            actor=actor_of(request),
            model_id=row.pk if row else None,
            if_unchanged=edit_conflicts.precondition_of(request),
        )
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    except Conflict as conflict:
        form.add_error("name_pattern", f"{str(conflict).capitalize()}.")
        return False
    _tell(request, f"Saved the row for {saved.name_pattern}.", saved.name_pattern)
    return True


def _tell(request: HttpRequest, text: str, name: str) -> None:
    """Say what was done, with a way back."""
    change = changes.newest_change(Subject.MODEL, name)
    messages.success(request, text, extra_tags=str(change.pk) if change else "")


def _show_conflict(
    request: HttpRequest, row: ModelSupport, form: ModelForm, outdated: OutdatedEdit
) -> HttpResponse:
    """The form again, to be saved on purpose: it now carries the present version."""
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
