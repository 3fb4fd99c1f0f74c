"""Data: the words by which people set rules, correct themselves, decide and leave work open, in
seven languages; and those by which a summary tells what came of work, in English.

English, German, French, Spanish, Portuguese, Chinese and Japanese. Japanese and Chinese write no
spaces between words, so that their words have no edges to look for.
"""

from __future__ import annotations

import re

UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Characters of scripts without spaces between words, as a range of a character class."""


def _any(*spaced: str, opening: str = "", other: str = "") -> re.Pattern[str]:
    """Words with edges round them, words that open a text, and words or signs without edges."""
    # A letter of a name, "https://a.org", is no word.
    parts = [rf"\b(?:{'|'.join(spaced)})(?!\w|\.\w)", f"^(?:{opening})" if opening else "", other]
    return re.compile("|".join(filter(None, parts)), re.I)


STANDING = _any(
    r"always|never|must(?:n't)?|don'?t|do not|from now on|make sure|only use|no need to|"
    r"remember|important|require[ds]?|prefer|please keep|avoid|without",
    r"immer|nie|niemals|nicht|kein\w*|ohne|muss|müssen|stets|wichtig|ab (?:jetzt|sofort)|nur noch",
    r"toujours|jamais|ne \S+ pas|doit|doivent|sans|désormais|évite[rz]?|n'\w+ pas",
    r"siempre|nunca|jamás|no \w+[ae]s|debe[ns]?|sin|evita|a partir de ahora|sempre|não|sem|deve",
    other="不要|必须|务必|总是|永远|禁止|不能|不得|请勿|一律|始终|只能|别用|"
    "必ず|常に|絶対|ないで|禁止|いつも|のみ",
)
CORRECTS = _any(
    r"instead(?! of)|(?:change|replace|update|rename|switch to|make) (?:it|that)|not .{1,40} but|"
    r"i meant|forget|(?:it|that) (?:should be|is now)|no longer|after all|(?:is|was) wrong|"
    r"(?:go|going|went|put|set|set it|change it|revert|return)(?: it)? back to|back to|revert to|"
    r"return to|rather than|changed? (?:my|our) minds?|on second thoughts?|move (?:it|that) to|"
    r"changed? from",
    r"statt|anstatt|anstelle|stattdessen|sondern|lieber|nicht mehr|ich meinte|soll(?:te)? doch|"
    r"zurück (?:auf|zu)|doch wieder",
    r"au lieu d\w*|à la place|plutôt|je voulais dire|finalement|revien[st] à|"
    r"reven(?:ir|ez|ons) à",
    r"en (?:lugar|vez) de|sino|ya no|mejor|quise decir|em vez de|melhor|"
    r"vuelve a|volvamos a|volver a|volte (?:a|para)|afinal",
    opening=r"(?:(?:no|wait|sorry|espera|attends|non|não)(?=\W*[\d,.:;!—–-])|nope|actually|"
    r"correction|scratch that|rather|hmm|oops|nein|doch|falsch|korrektur|pardon|en fait|perdón|"
    r"back|en realidad|na verdade)\b",
    other="^不[,，、 ]|^不对|^不是|^错了|^算了|改用|改成|改为|改到|改回|换成|换回|恢复|还是用|"
    "而不是|不再用|应该是|更正|ではなく|じゃなく|の代わり|に変更|に変えて|に戻|やっぱり|やはり|訂正|"
    "^いや|^違",
)
ALTERS = _any(
    r"move the|replace|(?:change|update)\b.{1,60}\bto|rename|switch to|should be|is now|"
    r"instead of|from now on",
    r"ändere|ersetze|wechsle|remplace[rz]?|cambia|reemplaza|troque",
)
"""Words that order a change: of what was said, or of what was never spoken of."""
DROPS = _any(
    r"instead of|rather than|in place of|not|no longer|stop using|don'?t use|forget|drop|isn't",
    r"statt|anstatt|anstelle von|nicht|nicht mehr|au lieu d\w*|plutôt que|pas|plus",
    r"en (?:lugar|vez) de|ya no|(?<=, )no|em vez d\w+|ao invés d\w+|(?<=, )não",
    other="而不是|不要用|不是|不再用|别用|不用|代替",
)
"""Words before a value that a correction does away with."""
DROPS_BEFORE_IT = _any(
    r"is (?:wrong|out|gone|a mistake)|was (?:wrong|a mistake)|no longer|is no longer",
    r"ist falsch|war falsch|gilt nicht|n'est plus|ya no|está mal",
    other="ではなく|じゃなく|の代わり|をやめ|不再|不对",
)
"""The same behind it."""
CHANGES = _any(
    r"change|from|replace|replacing|update|rename|switch|move|swap",
    r"ändere|ersetze|wechsle|von|vom|remplace[rz]?|de|du|cambia|reemplaza|troque",
    other="从|把|将|から",
)
TO = _any(
    r"to|with|by|into",
    r"auf|zu|in|durch|à|par|a|por|con|para",
    other="->|→|=>|改成|改为|改到|换成|变成|到|を|から|→",
)
"""Words between what is changed and what it is changed to."""
SETS = _any(
    r"use|using|set|sets|is|are|be|make(?! an?| sure)|default|defaults|call (?:it|them)|name|pick|"
    r"choose",
    r"nimm|nutze|verwende|setze?|ist|sei|nenne|heißt|utilise[rz]?|mets|usa|pon|sea",
    other="=|用|设为|设置为|叫做|に設定|を使|にして",
)
SETTER_ENDS = _any(
    r"use|using|set|sets|is|are|be|make(?! an?| sure)|default|call (?:it|them)|name|pick|choose|to",
    r"nimm|nutze|verwende|setze?|auf|ist|sei|nenne|heißt|utilise[rz]?|mets|usa|pon|sea|"
    r"à|par|a|por",
    other="=|用|设为|设置为|叫做",
)
PLACES = _any(
    r"in|with|about|on|at|for|of|from|like",
    r"für|bei|von|mit|dans|sur|pour|avec|en|em|para|con|sobre",
)
"""Words before what a sentence only speaks of: "be careful with a.py" sets nothing."""
ADDS = _any(
    r"also|as well|too|another|next|then|additionally|both",
    r"auch|außerdem|zusätzlich|noch ein\w*|dann|aussi|ensuite|également",
    r"también|además|luego|também",
    other="另外|还有|此外|同时|然后|また|さらに|も追加",
)
DECIDES = _any(
    r"decided|decision|because|instead of|rather than|root cause|the (?:issue|problem|bug|fix|"
    r"cause) (?:is|was)|turns out|chose|will use|going with|the reason|so that|trade-?off",
    r"weil|entschieden|entscheidung|anstatt|stattdessen|die ursache|der grund|liegt daran|deshalb",
    r"parce qu\w*|décidé|au lieu de|la cause|le problème (?:est|était)|c'est pourquoi",
    r"porque|decid\w+|en (?:lugar|vez) de|la causa|el problema (?:es|era)|por eso|ya que",
    other="因为|决定|原因是|问题是|由于|而不是|选择了|采用|ため、|ので、|決定|決めま|原因は|理由は",
)
LEAVES_OPEN = _any(
    r"next(?: step)?s?|still (?:failing|need|missing|to do|open)|remaining|todo|"
    r"to do|not yet|follow-?up|left to|blocked|pending|now (?:i|let me|let's)|let me now|"
    r"i'll now|needs? to",
    r"als nächstes|nächste[rsn]? schritte?|noch offen|noch nicht|fehlt noch|noch fehl|ausstehend",
    r"prochaine étape|ensuite|reste à|en attente|pas encore",
    r"siguiente paso|a continuación|pendientes?|falta|faltan|aún no|todavía|queda|próximo passo",
    other="下一步|接下来|待办|还需要|尚未|未完成|剩下|还没|次に|次は|残り|まだ|未完了|これから",
)
FILLER = frozenset(
    "the and for use with you can that this please now not but from have set should make are was "
    "will just instead actually sorry change switch let want need use using into its our your no "
    "rather wait correction meant forget update replace now longer must since "
    "rename move changed mind back after all again revert return going than "
    "der die das den dem ein eine und für mit von nicht doch soll sollte bitte jetzt statt anstatt "
    "auf ändere ersetze wechsle sondern nimm nutze verwende noch auch nein lieber zurück wieder "
    "les des une pour avec pas plutôt lieu utilise finalement reviens "
    "remplace cambia reemplaza los las una del por con para usa mejor lugar vez vuelve "
    "不要 要用 改用 改成 改为 换成 改回 换回 恢复 还是 是用 请用 使用 "
    "应该 该是 而不 不是 必须 设为 设置 变更 変更".split()
)
"""Words that say nothing of what a sentence is about."""


# -------------------------------------------------------------- what a summary claims, in English

NOT_YET = re.compile(
    r"\b(?:need(?:s|ed)? to|let me|let's|i'll|will|next|should|to do|todo|pending|remaining|"
    r"going to|want(?:s|ed)? to|not yet|later|would|could|can|may|might|if|must|plan(?:ned)? to|"
    r"in progress|was (?:in the process|about to))\b",
    re.I,
)
ORDERS = re.compile(
    r"[\W_]*(?:run|verify|fix|create|write|test|check|confirm|ensure|make|need|complete|continue|"
    r"investigate|add|update|implement|then|once|if|when)\b",
    re.I,
)
EARLIER = re.compile(r"\b(?:initially|first|then|before|previously|earlier|were|was)\b", re.I)
WENT_WELL = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succe\w+|works|worked|no (?:errors?|failures?|issues?))\b|✅|✓", re.I
)
WENT_WRONG = re.compile(
    r"\b(?:fail\w*|broken?|breaks|crash\w*|(?:not|n't) work\w*|unsuccessful\w*)\b|❌|✗", re.I
)
UNDONE = re.compile(
    r"\b(?:could not|couldn't|did not|didn't|failed to|unable to) "
    r"(?:be )?(fix\w*|resolve\w*|solve\w*|implement\w*|create\w*|update\w*|add\w*|work|run|build|"
    r"compile|complete\w*)\b",
    re.I,
)
COMPLETED = re.compile(r"\b(?:done|pass(?:es|ing)?|works?|\w{3,}ed|built|ran|wrote)\b|✅|✓", re.I)
STILL_WRONG = re.compile(
    r"\W*(?:all |the |both )*(?:\w+ )?(?:(?:tests?|lint\w*|builds?) (?:now |still )*"
    r"(?:fails?\b|(?:is|are) (?:failing|broken))|.*\bfail\w* after\b)",
    re.I,
)
CHANGED = frozenset(
    "added removed updated changed rewrote refactored simplified implemented deleted created moved "
    "renamed modified wrote fixed edited".split()
)
CHECKS = {
    "test": r"\b(?:tests?|specs?|test suite)\b",
    "lint": r"\blint\w*\b",
    "build": r"\b(?:builds?|compil\w+)\b",
}
"""How a claim speaks of a check."""
AGREES = re.compile(
    r"\W*(?:yes|yeah|yep|yup|ok|okay|sure|go (?:ahead|for it)|makes sense|good (?:idea|point)|"
    r"true|please do|do (?:it|that)|lgtm|"
    r"looks good|approved?|agreed?|confirm(?:ed)?|proceed|great|let['’]?s|sounds good|perfect|"
    r"ship it|i (?:approve|agree|confirm)|ja|oui|sí|si|好|可以|はい)(?!\w)"
    r"(?!.{0,12}\b(?:not|don['’]t|wait|never)\b)",
    re.I,
)
CONFIRMS = re.compile(
    r"\b(?:yes|correct|right|confirm\w*|works|exactly|indeed|true|ok|okay|fine)\b|looks good", re.I
)
TELLS_APPROVAL = re.compile(
    r"\b(?:user|customer|client|owner)\b.{0,30}\b(?:approv\w+|confirm\w+|agree[ds]?|"
    r"accept(?:s|ed)?|authori[sz]\w+|okayed|consent\w*|permit\w*|allow(?:s|ed)?|signed off|"
    r"gave .{0,12}(?:go-ahead|ok|permission|approval|consent)|said .{0,60}\b(?:may|can)\b)"
    r"|\b(?:approved|confirmed|authori[sz]ed|accepted|agreed|requested|permitted) by (?:the )?"
    r"(?:user|customer)|\b(?:user|customer)['’]s (?:approval|permission|consent|go-ahead|confirm)",
    re.I,
)
TELLS_REQUEST = re.compile(
    r"\b(?:user|customer|client)\b.{0,20}\b(?:ask(?:s|ed)|request(?:s|ed)|want(?:s|ed)|told|"
    r"instruct\w+|demand\w+|said|insist\w+|prefer\w*|decided|chose|selected)\b",
    re.I,
)
OF_ASKING = frozenset(
    "approve approved approval confirmed confirm agreed agree accepted accept "
    "authorized asked ask requested request wants wanted told said correct being customer "
    "permission".split()
)
IRREVERSIBLE = frozenset(
    "delete merge merged push pushed publish published deploy deployed release released drop "
    "overwrite send refund cancel production".split()
)
"""What cannot be taken back."""
DENIES = frozenset(
    "not no never without cannot nor don doesn didn isn aren wasn weren won hasn haven hadn "
    "couldn shouldn wouldn nothing none".split()
)
_CHANGING = "|".join(sorted(CHANGED))
TELLS_DONE = re.compile(
    rf"[\W_]*({_CHANGING}|done|completed|finished|verified|ran|tested|checked|confirmed|deployed|pushed|"
    r"merged)\b",
    re.I,
)
_PATH = r"(?:[\w.-]+/)*[\w.-]+\.[a-z]\w{0,6}"
FILE_CHANGED = re.compile(rf"^[\W_]*({_PATH})[`*]*\W+\(?(?:{_CHANGING}|new file)\b", re.I)
"""`a.py` (created), a.py - updated."""
CHANGED_FILE = re.compile(rf"[\W_]*(?:{_CHANGING})\b[^.;]*?[` ]({_PATH})\b(?!:\d)", re.I)
"""Updated the parser in `a.py`."""
COUNTED = re.compile(
    r"(?<![\w.])\d{1,2} (?:[\w-]+ ){0,3}(?:items|findings|tasks|files|steps|places|locations|"
    r"issues|points|phases|changes|comments|questions|spaces|parts|areas|"
    r"tests(?! (?:pass|fail|succ)))\b|\d-step",
    re.I,
)
"""What a writer counts himself: no line needs to have the number."""
