"""The API's addresses on their own: calls that need nothing of the site around them."""

from django.urls import path

from toolsearch_site.api import api_urls

urlpatterns = [path("api/v1/", api_urls())]
