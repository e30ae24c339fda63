"""Views for sign-in, sign-out, the account page and the theme."""

import logging
from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from catalog.console.pages import way_back
from catalog.services import accounts
from toolsearch_site.accounts import login_throttle
from toolsearch_site.accounts.forms import OwnPasswordForm, SignInForm
from toolsearch_site.navigation import THEME_COOKIE, THEMES

logger = logging.getLogger(__name__)

A_YEAR_SECONDS = 365 * 24 * 3600


class SignInView(LoginView):
    template_name = "toolsearch_site/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        login_throttle.remember_browser(response, form.get_user().get_username())
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if isinstance(form, SignInForm) and form.wait_seconds:
            logger.warning(
                "sign-in from %s refused: too many attempts", login_throttle.address_of(self.request)
            )
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response["Retry-After"] = str(form.wait_seconds)
        return response


sign_in = SignInView.as_view()


@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Shows the account and changes its password, which signs other browsers out."""
    assert isinstance(request.user, User)
    form = OwnPasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        accounts.change_own_password(user=request.user, password=form.cleaned_data["new_password1"])
        update_session_auth_hash(request, request.user)
        messages.success(request, "Your password is changed. Other browsers are signed out.")
        return redirect("account")
    status = 422 if form.is_bound else 200
    return render(request, "toolsearch_site/account.html", {"form": form}, status=status)


@login_not_required
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Stores the theme in a cookie, so that the next page is rendered with it."""
    theme = request.POST.get("theme", "")
    response = redirect(way_back(request, otherwise="overview"))
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=A_YEAR_SECONDS, samesite="Lax", secure=request.is_secure()
        )
    return response
