"""The root URL configuration."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from toolsearch_site import connect, views
from toolsearch_site.accounts import views as account_views
from toolsearch_site.api.mount import api_urls
from toolsearch_site.monitoring import views as monitoring_views

urlpatterns = [
    path("", views.overview, name="overview"),
    path("activity/", views.overview_activity, name="overview_activity"),
    path("first-steps/dismiss/", views.step_dismiss, name="step_dismiss"),
    path("connect/", connect.connect, name="connect"),
    path("find/", views.find, name="find"),
    path("sign-in/", account_views.sign_in, name="sign_in"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("account/", account_views.account, name="account"),
    path("theme/", account_views.choose_theme, name="choose_theme"),
    path("system/", monitoring_views.system, name="system"),
    path("api/v1/", api_urls()),
    path("admin/", admin.site.urls),
    path("", include("catalog.urls")),
    path("", include("sessions.urls")),
]

handler500 = "toolsearch_site.views.server_error"
