"""Every address of the product."""

from django.contrib import admin
from django.urls import include, path

from toolsearch_site import views
from toolsearch_site.api import api

urlpatterns = [
    path("healthz", views.alive, name="alive"),
    path("api/v1/", api.urls),
    path("admin/", admin.site.urls),
    path("", include("catalog.urls")),
    path("", include("sessions.urls")),
]
