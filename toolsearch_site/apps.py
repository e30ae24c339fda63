from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "toolsearch_site"

    def ready(self) -> None:
        # Models can be imported only now. Django finds no `admin` module below a package of an app by itself.
        from django.contrib.auth.signals import user_logged_in  # noqa: PLC0415

        from toolsearch_site.accounts import admin, sign_in_expiry  # noqa: F401, PLC0415

        user_logged_in.connect(sign_in_expiry.note_sign_in)
