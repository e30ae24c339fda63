"""Django's admin site with our own rule of who may enter."""

from django.contrib.admin.apps import AdminConfig


class SuperuserAdminConfig(AdminConfig):
    default_site = "toolsearch_site.admin_site.SuperuserSite"
