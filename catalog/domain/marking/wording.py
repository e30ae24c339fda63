"""Text that talks to the model. Each pattern is tried only where one of its plain words is in the text.

No pattern repeats without a bound, so the time is in proportion to the text.
"""

import re
from dataclasses import dataclass

_NEAR = r"[^.!?\n]{0,40}?"


@dataclass(frozen=True, slots=True)
class Wording:
    """`words` in small letters: without any of them the pattern cannot match."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]

    def may_be_in(self, lowered: str) -> bool:
        return any(word in lowered for word in self.words)


def _wording(words: str, pattern: str) -> Wording:
    """`words` with a comma between them."""
    return Wording(tuple(words.split(",")), re.compile(pattern, re.IGNORECASE | re.MULTILINE))


INSTRUCTIONS: tuple[Wording, ...] = (
    # what came before no longer holds
    _wording(
        "ignor,disregard,forget,overrid,bypass",
        rf"\b(?:ignor(?:e|es|ing)|disregard(?:s|ing)?|forget(?:ting)?|overrid(?:e|es|ing)|bypass(?:es|ing)?)\b{_NEAR}"
        rf"\b(?:previous|prior|above|earlier|preceding|original|system|safety|your)\b{_NEAR}"
        r"\b(?:instruction|prompt|rule|message|guideline|direction|restriction|polic|training)",
    ),
    _wording(
        "instruction,prompt",
        r"\b(?:new|updated|hidden|secret|real|actual)\s{1,3}(?:system\s{1,3})?"
        r"(?:instructions?|prompt)\s{0,3}:",
    ),
    # keep it from the user
    _wording(
        "tell,mention,inform,reveal,notify,alert,disclos,say,show",
        r"\b(?:do\s{1,3}not|don['’]?t|never|must\s{1,3}not|without|avoid)\s{1,3}(?:ever\s{1,3})?"
        r"(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|reveal(?:ing)?|notify(?:ing)?|alert(?:ing)?"
        rf"|disclos(?:e|ing)|say(?:ing)?|show(?:ing)?)\b{_NEAR}\b(?:users?|humans?|operators?|anyone|anybody)\b",
    ),
    _wording(
        "secretly,silently,covertly",
        r"\b(?:secretly|covertly|silently\s{1,3}(?:send|read|copy|call|add|include))\b",
    ),
    _wording(
        "important,critical,mandatory,urgent",
        r"\b(?:important|critical|mandatory|urgent)\b[^.?\n]{0,20}?\b(?:you|assistants?|models?|agents?)\s{1,3}"
        r"(?:must|have\s{1,3}to|need\s{1,3}to|are\s{1,3}required)\b",
    ),
    # who the model is
    _wording("you", r"\byou(?:\s{1,3}are|['’]re)\s{1,3}(?:now\s{1,3}(?:a|an|the|in)|no\s{1,3}longer)\b"),
    _wording("pretend", r"\bpretend\s{1,3}(?:to\s{1,3}be|that\s{1,3}you|you\s{1,3}are)\b"),
    # a part of the conversation that is not the server's to write
    _wording(
        "<",
        r"<\s{0,3}/?\s{0,3}(?:important|critical|system|system-reminder|instructions?|assistant)\s{0,3}>",
    ),
    _wording("<|", r"<\|[a-z_]{2,24}\|>"),
    _wording("inst],system]", r"\[/?(?:inst|system)\]"),
    _wording("system:,assistant:,human:", r"^[\s#*>]{0,6}(?:system|assistant|human):\s"),
    # other tools and other people's files
    _wording(
        "before,instead,prior",
        r"\b(?:before|instead\s{1,3}of|prior\s{1,3}to)\s{1,3}(?:using|calling|invoking|running|executing)\s{1,3}"
        r"(?:any|all|every|each)(?:\s{1,3}(?:of\s{1,3}the|other|another)){0,2}\s{1,3}(?:tools?|functions?|actions?)\b",
    ),
    _wording(
        "mcp__,plugin__",
        r"\b(?:ask|call|use|invoke|run|consult|query|execute|contact)\s{1,3}(?:the\s{1,3})?(?:tool\s{1,3})?[`'\"“]?"
        r"(?:mcp|plugin)__[\w-]{1,64}",
    ),
    _wording(
        ".ssh,id_rsa,id_ed25519,/etc/passwd,/etc/shadow,.aws/credentials,.cursor/mcp,.netrc",
        r"(?:~|/home/\S{1,40}|/root)?/?\.ssh/|\bid_(?:rsa|ed25519)\b|/etc/(?:passwd|shadow)\b|\.aws/credentials"
        r"|\.cursor/mcp|~/\.netrc\b",
    ),
    _wording(
        "conversation,dialogue,transcript,chat,history,context,password,credential,api,token",
        r"\b(?:send|forward|upload|post|copy|pass|include|append|exfiltrate|leak)\b[^.!?\n]{0,30}?"
        r"\b(?:(?:whole|full|entire|complete)\s{1,3}(?:conversation|chat|history|context)"
        r"|conversation\s{1,3}history|(?:user|customer)['’]s\s{1,3}(?:password|credentials?|api\s{1,3}keys?|tokens?))\b"
        r"|\b(?:give|send|pass|hand|show|tell)\s{1,3}(?:it|them)\s{1,3}(?:the|this|our)\s{1,3}"
        r"(?:conversation|dialogue|transcript|chat)\b",
    ),
)

# The two clearest of these in other languages: ignore what came before; keep it from the user.
INSTRUCTIONS += (
    # French
    _wording(
        "instruction",
        rf"\bignor(?:e|ez|er)\b{_NEAR}\binstructions?\s{{1,3}}(?:pr[ée]c[ée]d|ant[ée]ri)",
    ),
    _wording(
        "utilisat",
        r"\bn(?:e\s{1,3}|['’])(?:(?:le|la|les|lui|en)\s{1,3})?(?:dis|dites|parlez?|informez?|mentionnez?"
        rf"|r[ée]v[ée]lez?|pr[ée]venez)\s{{1,3}}(?:pas|rien|jamais)\b{_NEAR}\butilisat",
    ),
    # German
    _wording(
        "anweisung,regel,vorgabe,instruktion",
        rf"\b(?:ignorier|missacht|vergiss|vergess)\w{{0,3}}\b{_NEAR}\b(?:vorherig|bisherig|vorig|obig|früher)\w{{0,3}}"
        r"\s{1,3}(?:anweisung|regel|vorgab|instruktion)",
    ),
    _wording(
        "nutzer,anwender",
        rf"\b(?:sag|sage|erzähl|erzähle|verrate|zeig|zeige)\b{_NEAR}\b(?:nutzer|benutzer|anwender)\w{{0,2}}\s{{1,3}}"
        r"(?:davon\s{1,3})?(?:nicht|nichts|nie)\b",
    ),
    # Spanish, Portuguese, Italian
    _wording(
        "instruc,instruç,istruzion",
        rf"\bignor(?:a|e|en|ar|ad|i|ate|are)\b{_NEAR}\b(?:instruc\w{{1,6}}|instruç\w{{1,4}}|istruzioni)\s{{1,3}}"
        r"(?:anterior|previ|preceden|acima)",
    ),
    _wording(
        "usuari,utilizador,utent",
        r"\b(?:no|não|non)\s{1,3}(?:(?:se|lo|le|o)\s{1,3}){0,2}(?:digas?|dica|dire|menciones?|menzionare|reveles?|rivelare"
        rf"|informes?|informare)\b{_NEAR}\b(?:usuari|utilizador|utent)",
    ),
    # Russian
    _wording(
        "инструкц,указан,правил",
        rf"\b(?:про)?(?:игнорируй|забудь)\w{{0,3}}\b{_NEAR}\b(?:предыдущ|прежн|прошл)\w{{0,4}}\s{{1,3}}(?:инструкц|указан|правил)",
    ),
    _wording(
        "пользовател", rf"\bне\s{{1,3}}(?:говори|сообщай|упоминай|рассказывай)\w{{0,3}}\b{_NEAR}\bпользовател"
    ),
    # Chinese, Japanese
    _wording(
        "指令,指示,提示,规则",
        r"(?:忽略|无视|無視|忘记)[^。！？\n]{0,12}?(?:之前|以上|先前|前面|上述)[^。！？\n]{0,12}?(?:指令|指示|提示|规则)",
    ),
    _wording(
        "用户,用戶,使用者",
        r"(?:不要|别|切勿|请勿|請勿)[^。！？\n]{0,8}?(?:告诉|告知|告訴|透露)[^。！？\n]{0,8}?(?:用户|用戶|使用者)",
    ),
    _wording("指示,命令", r"(?:以前|これまで|上記|前)の[^。\n]{0,8}?(?:指示|命令)[^。\n]{0,6}?(?:無視|忘れ)"),
    _wording("ユーザ", r"ユーザー?に[^。\n]{0,10}?(?:言わないで|伝えないで|知らせないで|教えないで)"),
)

MARKUP: tuple[Wording, ...] = (
    _wording(
        "<",
        r"<\s{0,3}/?\s{0,3}(?:script|iframe|img|svg|style|object|embed|form|link|meta|base|input|video|audio"
        r"|body|html|frame|applet)\b[^<>\n]{0,200}>?",
    ),
    _wording("<!--", r"<!--"),
    _wording("javascript:", r"\bjavascript:"),
    _wording("![", r"!\[[^\]\n]{0,80}\]\(\s{0,3}(?:https?:)?//"),
)
