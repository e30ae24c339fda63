"""Pages that create, edit, roll back and delete policies, with a preview."""

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.views.decorators.http import require_http_methods, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, render_page, tell_done
from catalog.domain.errors import Conflict, InvalidInput, OutdatedEdit
from catalog.domain.policy import DEFAULT_SLUG
from catalog.forms.policies import NewPolicyForm, PolicyForm
from catalog.models import Policy
from catalog.selectors import policies, preview
from catalog.selectors.facts import read_policy
from catalog.services import policies as policy_services
from catalog.services.policies import FieldForAdmins
from catalog.views import edit_conflicts
from catalog.views.edit_conflicts import EditConflict

FLIPS_SHOWN = 12


@require_http_methods(["GET", "POST"])
@role_required(Role.EDITOR)
def policy_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """GET opens the current policy or an earlier version, with a preview of going back."""
    policy = policies.find_policy(slug)
    if request.method != "POST":
        shown = policies.read_version(policy, request.GET.get("version", ""))
        return _show_editor(request, policy, PolicyForm.of(shown), shown.to_mapping())
    form = PolicyForm(request.POST)
    try:
        if form.is_valid() and _save(request, policy, form):
            return redirect(policy)
    except OutdatedEdit as outdated:
        return _show_conflict(request, policies.find_policy(slug), form, outdated)
    return _show_editor(request, policy, form, None, status=422)


@require_POST
@role_required(Role.EDITOR)
def policy_preview(request: HttpRequest, slug: str) -> HttpResponse:
    """A preview of the form's values. Nothing is stored, so mistakes are shown and are no error."""
    policy = policies.find_policy(slug)
    form = PolicyForm(request.POST)
    return _show_editor(request, policy, form, form.proposal() if form.is_valid() else None)


@require_http_methods(["GET", "POST"])
@role_required(Role.EDITOR)
def policy_create(request: HttpRequest) -> HttpResponse:
    form = NewPolicyForm(request.POST or None, initial={"source": DEFAULT_SLUG})
    if request.method == "POST" and form.is_valid():
        made = _create(request, form)
        if made is not None:
            messages.success(request, f"Policy {made.slug} created. Change what it should do differently.")
            return redirect("policy_edit", made.slug)
    context = {"form": form, "section": "policies"}
    return render(request, "catalog/policy_create.html", context, status=422 if form.is_bound else 200)


@require_POST
@role_required(Role.EDITOR)
def policy_roll_back(request: HttpRequest, slug: str) -> HttpResponse:
    policy = policies.find_policy(slug)
    number = request.POST.get("number", "")
    if not number.isdecimal():
        raise InvalidInput.at("number", "must be a version's number")
    try:
        change = policy_services.roll_back(
            policy=policy,
            number=int(number),
            actor=actor_of_request(request),
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except OutdatedEdit as outdated:
        changed = ", ".join(str(field) for field in outdated.changed)
        messages.error(
            request, f"Not rolled back: {slug} was changed meanwhile ({changed}). Look at it first."
        )
        return redirect(policy)
    if change is not None:
        tell_done(request, f"The policy {slug} is again what it was in version {number}.", change)
    else:
        messages.info(request, f"The policy {slug} is the same as in version {number} already.")
    tasks.wake_workers_on_commit()
    return redirect(policy)


@require_POST
@role_required(Role.ADMIN)
def policy_delete(request: HttpRequest, slug: str) -> HttpResponse:
    policy = policies.find_policy(slug)
    if request.POST.get("confirm") != slug:
        messages.error(request, f"Nothing was deleted: type {slug} to delete the policy.")
        return redirect(policy)
    try:
        policy_services.delete_policy(policy=policy, actor=actor_of_request(request))
    except Conflict as conflict:
        messages.error(request, f"Nothing was deleted: {conflict}.")
        return redirect(policy)
    messages.success(request, f"The policy {slug} is deleted.")
    return redirect("policy_list")


def _save(request: HttpRequest, policy: Policy, form: PolicyForm) -> bool:
    """False where the engine refuses a value; the form then shows which. Raises OutdatedEdit."""
    try:
        change = policy_services.change_policy(
            policy=policy,
            changed=form.proposal(),
            actor=actor_of_request(request),
            if_unchanged=edit_conflicts.precondition_of_form(request),
        )
    except InvalidInput as invalid:
        form.tell(invalid)
        return False
    except Conflict as conflict:
        form.add_error("search_tool_name", capfirst(f"{conflict}."))
        return False
    except FieldForAdmins as refusal:
        form.add_error(refusal.field, capfirst(f"{refusal}."))
        return False
    tasks.wake_workers_on_commit()
    if change is not None:
        tell_done(request, f"Saved the policy {policy.slug}. The version before is kept.", change)
    else:
        messages.info(request, "Nothing was different, so nothing was saved.")
    return True


def _create(request: HttpRequest, form: NewPolicyForm) -> Policy | None:
    source = read_policy(policies.find_policy(form.cleaned_data["source"])).to_mapping()
    wanted = {**source, "slug": form.cleaned_data["slug"]}
    try:
        made = policy_services.create_policy(wanted=wanted, actor=actor_of_request(request))
    except InvalidInput as invalid:
        form.tell(invalid)
        return None
    except Conflict as conflict:
        form.add_error("slug", capfirst(str(conflict)))
        return None
    except FieldForAdmins as refusal:
        form.add_error("source", capfirst(f"{refusal}. Copy another policy."))
        return None
    tasks.wake_workers_on_commit()
    return made


def _show_conflict(
    request: HttpRequest, policy: Policy, form: PolicyForm, outdated: OutdatedEdit
) -> HttpResponse:
    """The form with the current version, so that saving again is deliberate."""
    present = read_policy(policy)
    conflict = edit_conflicts.merge_form(
        request,
        outdated,
        wanted=present.change(form.proposal()).to_mapping(),
        present=PolicyForm.of(present),
        label_of=policies.label_of,
        paired_fields={"visible": "shown"},
    )
    merged = PolicyForm(conflict.data)
    proposal = merged.proposal() if merged.is_valid() else None
    return _show_editor(request, policy, merged, proposal, conflict=conflict, status=409)


def _show_editor(
    request: HttpRequest,
    policy: Policy,
    form: PolicyForm,
    proposal: Mapping[str, object] | None,
    *,
    conflict: EditConflict | None = None,
    status: int = 200,
) -> HttpResponse:
    """Without a preview where the form has mistakes."""
    opened_with = edit_conflicts.version_in(request, policy_services.version_of(policy))
    context = {
        "policy": policy,
        "form": form,
        "conflict": conflict,
        "version": conflict.version if conflict else opened_with,
        **_look_ahead(policy, form, proposal),
    }
    page, part = "catalog/policy_edit.html", "catalog/_policy_preview.html"
    return render_page(request, page, part, context, status=status)


def _look_ahead(policy: Policy, form: PolicyForm, proposal: Mapping[str, object] | None) -> dict[str, object]:
    if proposal is None:
        return {}
    try:
        found = preview.preview(policy=policy, proposal=preview.Proposal(policy=proposal))
    except InvalidInput as invalid:
        form.tell(invalid)
        return {}
    flips = sorted(found.dry_run.flips, key=lambda flip: (-flip.tokens, flip.name))
    wanted = read_policy(policy).change(proposal)
    return {
        "preview": found,
        "wanted": wanted,
        "unmatched": policies.find_unmatched_patterns(wanted),
        "flips": flips[:FLIPS_SHOWN],
        "flips_left_out": len(flips[FLIPS_SHOWN:]),
    }
