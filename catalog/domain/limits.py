"""Limits on the work that untrusted input can cause. All of them are defined here.

Each has its unit in its name and its reason beside it. `docs/operations.md` says what happens past each.
"""

# Bodies of requests (`catalog/access/callers.py`).
BODY_BYTES = 1024 * 1024  # a thousand built-in tools fit
CONFIG_BODY_BYTES = 10 * 1024 * 1024  # a config file of many servers, with long settings
CONFIG_TEXT_BYTES = (
    256 * 1024
)  # of one that is not strict JSON: its parsers are slower (`catalog/documents.py`)
CONFIG_LEVELS = 64  # of objects and lists in one: clients' own files have ten
CONFIG_TOML_DOTS = 200  # in one line of TOML
CONFIG_SERVERS = 10_000  # of one file (`catalog/services/config.py`): the catalog is held while it is stored

# Queries (`catalog/domain/query.py`). A query is kept with its search, cut to the first of these.
QUERY_CHARS = 500  # more than any sentence that a model asks with
PATTERN_CHARS = 200
SELECT_NAMES = 20  # loaded by one search
SELECT_CHARS = 8_000  # as many of the longest names of servers and tools, with quotes around them
# Whole numbers in policies, models, keys and sessions: of the model, the form, REST and commands.
COUNT = 2**31 - 1  # what an integer column holds on either database
ROW_ID = 2**63 - 1
MODEL_PRICE_DOLLARS = (
    100_000  # per million tokens: what its column holds, with six decimals, is ten times that
)
CALL_SECONDS = 3600  # of one call through the gateway: a policy's longest time limit
RESULTS = 50  # of one search: what a policy may give and a caller may ask for

# Patterns of a search (`catalog/domain/patterns.py`, `catalog/search/patterns.py`).
PATTERN_NODES = 5_000  # that the engine lays out, at some 300 bytes each; honest patterns have a few hundred
PATTERN_WORK_SECONDS = 0.3  # processor time of one search: an ordinary pattern takes less on a busy machine
PATTERN_WAIT_SECONDS = 0.8  # the same by the clock, for a machine that has no time to give
PATTERN_TEXT_SECONDS = 0.1  # for one text: what takes longer would take for ever on some other text

# Texts of definitions in the search (`catalog/search/documents.py`).
DOCUMENT_LEVELS = 5  # of parameters inside parameters
DOCUMENT_PARAMETERS = 300  # of one tool, and as many inside them
DOCUMENT_NAME_CHARS = 200  # of one parameter: a pattern is tried on each
DOCUMENT_ENUM_VALUES = 30  # of one parameter
DOCUMENT_TEXT_CHARS = 20_000  # of one description

# Words that a process remembers (`catalog/search/words.py`, `wordvectors.py`): 100 MB, and 40 MB, at most.
REMEMBERED_TEXTS = 32  # of queries, which a search analyses several times
REMEMBERED_RUNS = 1 << 14  # several objects each: more of them would make garbage collections long
REMEMBERED_WORDS = 1 << 15
REMEMBERED_WORD_CHARS = 32  # of ASCII: two letters can be a part with objects of its own, 200 bytes
REMEMBERED_OTHER_WORD_CHARS = 12  # of Chinese, each character is in three terms

# Lists of globs (`catalog/domain/globs.py`).
GLOB_LIST_GLOBS = 1_000  # enough to name every tool of the largest servers
GLOB_CHARS = 256  # twice the longest `server/tool` that people write
GLOB_WILDCARDS = 16  # each makes a glob slower to match
GLOB_WORK = 300  # of one list over all its globs: a third of a second for 10,000 tools at the worst
GLOB_WORK_CONTAINED = 1  # of `*name*`; `name`, `name*` and `*name` cost nothing that counts
GLOB_WORK_PATTERN = 5  # of any other glob
GLOBS_TRIED = 50  # of a policy's list, on every tool, to say which match nothing
GLOBS_REMARKED = 5  # as matching nothing: each was tried on all of them
GLOB_LISTS_KEPT = 128  # compiled: a list may have a quarter of a megabyte

# Word differences (`catalog/views/word_diff.py`).
DIFFERENCE_WORDS = 3_000  # of one field: people do not read longer diffs
DIFFERENCE_STEPS = 400_000  # of all comparisons of one page: a fifth of a second
DIFFERENCE_CHARS = 20_000  # of one piece that is shown

# Texts on pages (`toolsearch_site/templatetags/console.py`).
UNSEEN_EXPLAINED_CHARS = 2_000  # of one text, each with its name: that is a hundred bytes of HTML each

# Marking (`catalog/domain/marking/`).
MARKING_CHARS = 200_000  # of one definition: what is longer is marked as not looked at to its end
MARKING_PATH_LEVELS = 20  # of a mark's field: deeper places are reported at this level
MARKS_OF_A_DEFINITION = 50  # a reader has seen enough
MARKING_FINDS = 100  # of one kind in one field: beyond, they are not counted

# What servers and files give (`catalog/upstream/`, `catalog/domain/connection.py`, `dialects/`).
LISTING_PAGES = 100
LISTING_TOOLS = 10_000
LISTING_FEATURES = 1_000  # resources, templates and prompts each
LISTING_FEATURES_BYTES = 1024 * 1024  # of one server's together: a page of the console reads them
LISTING_BYTES = 16 * 1024 * 1024  # all that a server sends, noise included
MESSAGE_BYTES = 16 * 1024 * 1024  # of one message: a result of more is cut off while it comes in
LISTING_REQUESTS = 100  # that a server makes unasked: a listing needs none
LISTING_NOTIFICATIONS = 10_000
DEFINITION_BYTES = 256 * 1024
COMMAND_CHARS = 1_000
ADDRESS_CHARS = 2_000
SERVER_TIMEOUT_SECONDS = 240  # that a server may be given to answer: it holds a worker's thread
TEST_SECONDS = 30  # of a connection test, from the request to its result
TEST_TOOLS_NAMED = 200  # of a connection test's result
DESCRIPTION_CHARS = 300  # of a server, written by an admin: one line
MESSAGE_LEVELS = 160  # of brackets in a message: the client's parser refuses one of 200
MESSAGE_BRACKETS = 1_000_000  # in a message that is read for its depth: a fifth of a second
SCHEMA_LEVELS = 128  # of objects and lists in a definition: past any that a model can fill in
SCHEMA_NODES = 5_000  # objects and lists in a definition: a second of checking in the slowest draft
SCHEMA_PAIRS = 200_000  # of items that a list without repeats is compared by: a fifth of a second

# Schemas on pages and in advice (`catalog/views/schema_tree.py`, `catalog/domain/schema_lint.py`).
SCHEMA_TREE_LEVELS = 8  # what a page can indent
SCHEMA_TREE_NODES = 400  # what a page can show
SCHEMA_ADVICE_NODES = 2_000  # schemas inside one schema that are looked at for advice

# What an agent's session may leave behind (`sessions/services/`).
SNAPSHOTS_OF_A_SESSION = 100  # a compaction takes one: days of work
SNAPSHOTS_OF_A_SESSION_BYTES = 4 * 1024 * 1024  # names only: a few thousand loaded tools in several of them
LOADED_TOOL_BYTES = 250  # of one row, with its indexes
UNCOUNTED_BYTES = 16_000  # of loaded tools and snapshots: what most sessions have costs no sum over the key's

# What a server may leave behind (`catalog/services/retention.py`, `catalog/services/refresh.py`).
GONE_TOOLS_OF_A_SERVER = 1_000  # without settings
GONE_TOOLS_OF_A_SERVER_BYTES = 16 * 1024 * 1024  # with their revisions: as much as one listing may have
REVISIONS_OF_A_TOOL = 50  # and the approved one where it is older
OLD_REVISIONS_OF_A_SERVER_BYTES = (
    32 * 1024 * 1024
)  # beside the present and approved ones: twice what one listing may have
RUNS_OF_A_SERVER = 500  # records of refreshes: three weeks at one an hour
REJECTED_OF_A_RUN = 100  # an admin has seen what is wrong
REJECTED_OF_A_RUN_BYTES = 64 * 1024  # names and reasons together

# The gateway (`sessions/gateway/`).
GATEWAY_BODY_BYTES = 1024 * 1024  # of one message from a client
GATEWAY_MESSAGE_BYTES = 1_000_000  # of one message to a client: some clients refuse an event past 1 MiB
GATEWAY_CONTENT_BYTES = GATEWAY_MESSAGE_BYTES - 50_000  # of it for tools or a result: the rest is around them
GATEWAY_PAGE_ENTRIES = 500
GATEWAY_SEARCH_TOKENS = 2_000  # of definitions in one answer of a search; the other matches are named
GATEWAY_DESCRIBED_NAMES = 20
GATEWAY_OPEN_CALLS = 64  # of one key in one process
GATEWAY_OPEN_STREAMS = 64  # of one key in one process
GATEWAY_CLIENTS_OF_A_KEY = 50
CALL_ERROR_CHARS = 500  # of a server's own words about a call that failed
RECORDED_BYTES = 16 * 1024  # of a call's arguments, and of its result
UPSTREAM_REFUSED_NAMES = 50  # of what a process could not pass on from one server
KEPT_RESULT_SECONDS = 15 * 60
KEPT_RESULT_BYTES = 4 * 1024 * 1024
KEPT_RESULTS_OF_A_KEY = 100

OAUTH_SCOPES = 50
OAUTH_SCOPE_CHARS = 300
OAUTH_TOKEN_CHARS = 16_384  # of a token, or of a client's id or secret
OAUTH_URL_CHARS = 2_000
OAUTH_HOST_CHARS = 260  # the longest name, and a port
OAUTH_BYTES = 256 * 1024  # of all answers that one sign-in or renewal reads
CHALLENGE_CHARS = 8_192  # of a WWW-Authenticate header
