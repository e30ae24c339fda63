"""Agents' pages: their sessions, the test console, their keys."""

from django.urls import path

from sessions.views import console, keys, sessions

urlpatterns = [
    path("sessions/", sessions.session_list, name="session_list"),
    path("console/", console.console, name="console"),
    path("keys/", keys.key_list, name="key_list"),
    path("keys/<int:key_id>/revoke/", keys.key_revoke, name="key_revoke"),
]
