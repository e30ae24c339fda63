"""User accounts: sign-in, sign-out, the account page, and the Django admin for superusers."""
