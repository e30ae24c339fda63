"""Stop words: grammar, politeness, and how people address an assistant."""

_GRAMMAR = """
a about above after again against all also am an and any are aren as at be because been before being below
between both but by can cannot could couldn did didn do does doesn doing don down during each few for from
further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn
it its itself just ll m me more most mustn my myself no nor not now of off on once only or other our ours
ourselves out over own re s same shan she should shouldn so some such t than that the their theirs them
themselves then there these they this those through to too under until up upon us ve very via was wasn we
were weren what when where which while who whom whose why will with within without won would wouldn you your
yours yourself yourselves d
"""

_ADDRESS = """
please kindly thanks thank hi hello hey want wants wanted wanna need needs needed like would let lets help
helps able could may might must shall gonna im ive
"""

STOP_WORDS = frozenset((_GRAMMAR + _ADDRESS).split())
