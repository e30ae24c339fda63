"""The page that shows an agent's first answer in every format, made by the code that answers agents."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, role_required
from catalog.console.pages import render_page
from catalog.selectors import policies
from sessions.offers import known_models, tool_lists
from sessions.offers.rendering import pieces
from sessions.offers.rendering.formats import Format, Hosted, ListForm, resolve_auto
from sessions.selectors import agent_answers, samples
from sessions.views import gateway_answers


@dataclass(frozen=True, slots=True)
class FormWords:
    label: str
    explanation: str


WORDS = {
    (Format.MCP, Hosted.NO): FormWords(
        "MCP",
        "The tools that load, in full. The agent's program adds the search tool"
        " and keeps the deferred tools to itself.",
    ),
    (Format.ANTHROPIC, Hosted.NO): FormWords(
        "Anthropic",
        "Every tool, the deferred ones marked: the API keeps those from the model until a search names them.",
    ),
    (Format.ANTHROPIC, Hosted.BM25): FormWords(
        "Anthropic, hosted BM25", "The same list, with Anthropic's own search by words in place of ours."
    ),
    (Format.ANTHROPIC, Hosted.REGEX): FormWords(
        "Anthropic, hosted regex",
        "The same list, with Anthropic's own search by regular expression in place of ours.",
    ),
    (Format.OPENAI, Hosted.NO): FormWords(
        "OpenAI", "The search tool, which the agent's program carries out, and the tools that load."
    ),
    (Format.OPENAI, Hosted.YES): FormWords(
        "OpenAI, hosted", "A namespace per server, its deferred tools marked: OpenAI searches them itself."
    ),
    (Format.STUB, Hosted.NO): FormWords(
        "Stubs", "Every tool; the deferred ones have a name and a description, and no schema yet."
    ),
    (Format.AUTO, Hosted.NO): FormWords(
        "By model", "The hosted form of the model's provider where the table of models says so, else MCP."
    ),
}


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    query: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """The format in the URL and what it resolves to; an unknown format falls back to MCP."""

    form: ListForm
    model: str

    @classmethod
    def of(cls, request: HttpRequest) -> "AnswerRequest":
        format, hosted = request.GET.get("format", ""), request.GET.get("hosted", Hosted.NO)
        known = next((known for known in WORDS if known == (format, hosted)), (Format.MCP, Hosted.NO))
        return cls(ListForm(*known), request.GET.get("model", "").strip())

    @property
    def answered(self) -> ListForm:
        return resolve_auto(self.form, known_models.find_ability(self.model))

    @property
    def is_auto(self) -> bool:
        return self.form.format is Format.AUTO

    @property
    def query(self) -> str:
        """The query string of this answer."""
        return write_query(self.form) + (f"&{urlencode({'model': self.model})}" if self.is_auto else "")

    @property
    def words(self) -> FormWords:
        return WORDS[self.form.format, self.form.hosted]


@require_GET
@role_required(Role.VIEWER)
def agent_answer(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the whole prompt and the beginning of the list; `agent_answer_json` has everything."""
    policy = policies.find_policy(slug)
    if gateway_answers.is_asked(request):
        return gateway_answers.show_client_answer(request, policy, _write_tabs(None))
    asked = AnswerRequest.of(request)
    address = f"{reverse('api:get_policy_tools', args=[slug])}?{write_query(asked.answered)}"
    context = {
        "policy": policy,
        "asked": asked,
        "answer": agent_answers.read_answer(policy.pk, asked.answered),
        "tabs": _write_tabs(asked),
        "address": request.build_absolute_uri(address),
        "part": "sessions/_agent_answer.html",
    }
    page, part = "sessions/agent_answer.html", "sessions/_agent_answer.html"
    return render_page(request, page, part, context)


@require_GET
@role_required(Role.VIEWER)
def agent_answer_json(request: HttpRequest, slug: str) -> HttpResponse:
    """The whole answer as a file, byte for byte as the API sends it; `part=tools` is the list alone."""
    policy = policies.find_policy(slug)
    if gateway_answers.is_asked(request):
        return gateway_answers.send_client_answer(request, policy)
    form = AnswerRequest.of(request).answered
    resolved = agent_answers.resolve_without_session(policy.pk)
    if request.GET.get("part") == "tools":
        answer = samples.render_tools(resolved, form)
    else:
        answer = tool_lists.render_tool_list(resolved, form, session=None, version=resolved.offer.version)
    headers = {"Content-Disposition": f'attachment; filename="{policy.slug}-{form.format}.json"'}
    return HttpResponse(pieces.join_pieces(answer), content_type="application/json", headers=headers)


def write_query(form: ListForm) -> str:
    """The format as query parameters of the API and these pages."""
    hosted = {} if form.hosted is Hosted.NO else {"hosted": form.hosted}
    return urlencode({"format": form.format, **hosted})


def _write_tabs(asked: AnswerRequest | None) -> list[Tab]:
    """The first is an MCP client's, which asks the gateway; it is open where no format was asked for."""
    of_client = Tab("MCP client", gateway_answers.write_query(), is_open=asked is None)
    forms = [(ListForm(*known), words) for known, words in WORDS.items()]
    is_open = asked and asked.form
    return [of_client, *(Tab(words.label, write_query(form), form == is_open) for form, words in forms)]
