"""Policies, to be read."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from catalog.access import Role, role_required
from catalog.models.changes import Subject
from catalog.selectors import changes, policies


@require_GET
@role_required(Role.VIEWER)
def policy_list(request: HttpRequest) -> HttpResponse:
    return render(request, "catalog/policy_list.html", {"rows": policies.policies_for_table()})


@require_GET
@role_required(Role.VIEWER)
def policy_detail(request: HttpRequest, slug: str) -> HttpResponse:
    policy = policies.find_policy(slug)
    context = {
        "policy": policy,
        "summary": policies.summarize(policy),
        "groups": policies.explain_fields(policy),
        "changes": changes.changes_of(Subject.POLICY, policy.slug),
    }
    return render(request, "catalog/policy_detail.html", context)
