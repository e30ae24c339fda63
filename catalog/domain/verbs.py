"""English verbs in names and descriptions of tools, recognised in any of their forms."""

from collections.abc import Iterable

_LISTED = """
abort accept access acknowledge acquire activate add adjust advance aggregate allocate allow analyse analyze
annotate answer append apply approve archive are arrange ask assert assess assign associate attach audit
authenticate authorize auto backup bake ban batch begin bind block book boost bootstrap branch break browse
build bulk burn buy cache calculate call can cancel capture cast change charge chat check choose claim
classify clean clear click clone close collect combine commit compare compile complete compose compress
compute configure confirm connect consume contact contain continue control convert copy correct count crawl
create crop cut deactivate debug decide decline decode decrease decrypt define delete deliver demote deploy
deposit deprecate describe destroy detach detect determine diagnose diff disable discard disconnect discover
dismiss dispatch display divide do download drag draw drop dump duplicate echo edit eject embed emit enable
encode encrypt end enforce enhance enqueue enrich enroll ensure enter enumerate erase escalate establish
estimate evaluate examine exchange exclude execute exist exit expand expire explain explore export expose
extend extract fail fetch fill filter finalize find finish fire fix flag flatten flip flush focus fold
follow force forecast fork format forward free freeze gain gather generate geocode get give go grant group
guess halt handle has hash help hide highlight hold hover identify ignore import improve include increase
index infer ingest initialise initialize initiate inject input insert inspect install instruct integrate
interact interpret introspect invalidate investigate invite invoke is issue iterate join jump keep kick kill
label launch learn leave let lift like limit link list listen load locate lock log login logout look lookup
make manage map mark match measure merge mesh message migrate minimize mint mirror modify monitor mount move
multiply mute name navigate negotiate normalize notify obtain offer open operate optimize orchestrate order
organise organize outline override pack paginate paint parse partition paste patch pause pay perform pick
pin ping pipe place plan play plot poll populate post predict prepare press preview print prioritize process
produce profile promote prompt propose protect prove provide provision prune publish pull purchase purge
push put query queue quit quote raise randomize rank rate read reassign reboot rebuild recall receive
recognize recommend reconcile record recover redact redeem redirect redo reduce refactor refer refine
refresh refund register reindex reject relate release reload remember remind remove rename render renew
reopen reorder repair repeat replace replicate reply report request rerun rescan reschedule research reserve
reset resize resolve respond restart restore restrict resume retrieve retry return reveal reverse revert
review revise revoke rewrite roll rotate round route run sample sanitize save say scaffold scale scan schedule
score scrape screen scroll seal search secure see seed select sell send separate serve set share shift show
shrink shuffle shut sign simplify simulate skip sleep slice solve sort spawn specify spell split stage star
start stat stop store stream stringify structure submit subscribe substitute subtract suggest sum summarise
summarize supply suspend swap switch sync synchronize tag tail take talk tap tell terminate test think
throttle toggle top trace track train transcribe transfer transform transition translate transpose trigger
trim truncate try tune turn type unarchive unassign unban unblock undeploy undo unfollow uninstall unlink
unlock unmute unpin unpublish unregister unset unsubscribe unwrap update upgrade upload upsert use validate
verify view visit visualise visualize vote wait wake walk warn watch widen wipe withdraw wrap write zip zoom
"""
_VERBS = frozenset(_LISTED.split())


def has_verb(words: Iterable[str]) -> bool:
    """Whether one of these words, in lower case, is a verb: `fetch`, `fetches` and `fetching` are."""
    return any(form in _VERBS for word in words for form in _forms(word))


def _forms(word: str) -> Iterable[str]:
    """The base forms that the word may belong to."""
    yield word
    for ending, others in (
        ("ies", ("y",)),
        ("es", ("", "e")),
        ("s", ("",)),
        ("ing", ("", "e")),
        ("ied", ("y",)),
        ("ed", ("", "e")),
    ):
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            yield from (stem + other for other in others)
            if stem[-1:] == stem[-2:-1]:
                yield stem[:-1]
