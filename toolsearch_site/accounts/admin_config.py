"""Configures the Django admin to use our admin site."""

from django.contrib.admin.apps import AdminConfig


class SuperuserAdminConfig(AdminConfig):
    default_site = "toolsearch_site.accounts.admin_site.SuperuserSite"
