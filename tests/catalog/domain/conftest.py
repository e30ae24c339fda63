"""No deadline for property tests: a busy machine would break it. `--hypothesis-profile=long` digs deeper."""

from hypothesis import settings

settings.register_profile("toolsearch", deadline=None)
settings.register_profile("long", deadline=None, max_examples=2_000)
settings.load_profile("toolsearch")
