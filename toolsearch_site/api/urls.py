"""A URL configuration with the API alone, for `api_dispatch`."""

from django.urls import path

from toolsearch_site.api.mount import api_urls

urlpatterns = [path("api/v1/", api_urls())]
