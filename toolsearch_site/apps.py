from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "toolsearch_site"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in  # noqa: PLC0415  models can be imported only now

        from toolsearch_site.sign_in_ends import begin  # noqa: PLC0415

        user_logged_in.connect(begin)
