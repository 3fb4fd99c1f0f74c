"""Data: the words by which people set and lift rules, correct themselves, decide and leave work
open, in seven languages.

English, German, French, Spanish, Portuguese, Chinese and Japanese. Japanese and Chinese write no
spaces between words, so that their words have no edges to look for.
"""

from __future__ import annotations

import re

UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Characters of scripts without spaces between words, as a range of a character class."""


def any_of(*spaced: str, opening: str = "", other: str = "") -> re.Pattern[str]:
    """Words with edges round them, words that open a text, and words or signs without edges."""
    # A letter of a name, "https://a.org", is no word.
    parts = [rf"\b(?:{'|'.join(spaced)})(?!\w|\.\w)", f"^(?:{opening})" if opening else "", other]
    return re.compile("|".join(filter(None, parts)), re.I)


DECIDES = any_of(
    r"decided|decision|because|instead of|rather than|root cause|the (?:issue|problem|bug|fix|"
    r"cause) (?:is|was)|turns out|chose|will use|going with|the reason|so that|trade-?off",
    r"weil|entschieden|entscheidung|anstatt|stattdessen|die ursache|der grund|liegt daran|deshalb",
    r"parce qu\w*|décidé|au lieu de|la cause|le problème (?:est|était)|c'est pourquoi",
    r"porque|decid\w+|en (?:lugar|vez) de|la causa|el problema (?:es|era)|por eso|ya que",
    other="因为|决定|原因是|问题是|由于|而不是|选择了|采用|ため、|ので、|決定|決めま|原因は|理由は",
)
LEAVES_OPEN = any_of(
    r"next(?: step)?s?|still (?:failing|need|missing|to do|open)|remaining|todo|to do|not yet|"
    r"follow-?up|left to|blocked|pending|now (?:i|let me|let's)|let me now|i'll now|needs? to",
    r"als nächstes|nächste[rsn]? schritte?|noch offen|noch nicht|fehlt noch|noch fehl|ausstehend",
    r"prochaine étape|ensuite|reste à|en attente|pas encore",
    r"siguiente paso|a continuación|pendientes?|falta|faltan|aún no|todavía|queda|próximo passo",
    other="下一步|接下来|待办|还需要|尚未|未完成|剩下|还没|次に|次は|残り|まだ|未完了|これから",
)


# -------------------------------------------------------------- rules


_OPENS = (
    r"(?:^\W*|[,;:–—]\s*|\b(?:and|but|so|then|please|also|just|or|you|we|must|should|shall|will|"
    r"ok|okay|important|note|remember|reminder|rule|on|instead|actually)\W+)"
)
"""What stands before the verb of an order: nothing, a comma, "please", "you"; never "I" or "it"."""
_PAST = r"(?!\w*(?<!mb)(?<!ee)ed\b|got|had|was|were|did|saw|went|been|seen|heard|happen)"
"""Not a verb in the past: "we never deployed that" reports."""
_TOLD = r"(?<!\bit )(?<!\bi )(?<!\bthis )(?<!\bthat )(?<!\bthere )(?<!\bwhich )(?<!\bwhat )"
"""Behind a subject of which something can be required."""
ACTS = (
    r"(?:delete|remove|drop|push|merge|deploy|overwrite|reset|refund|cancel|charge|send|book|pay|"
    r"commit|publish|release|restart|install|spend|issue|transfer|change|edit|modify|touch|"
    r"rewrite|close|rename|use|exceed|share|run|migrate|order|replace|rebase|revert|force|skip|"
    r"call|upgrade)"
)
ONE_ACT = (
    (re.compile(r"\b(?:touch|edit|chang|alter|modif)(?:e|y|ing|ying)?\b", re.I), "modify"),
    (re.compile(r"\b(?:remov|drop|eras|delet)(?:e|ing|ping)?\b", re.I), "delete"),
)
"""Verbs that name the same act, and the one for all of them."""

_CONSENT = r"(?:approval|permission|consent|confirmation|sign-?off|go-?ahead|green light)"
_ME = r"(?:me|us|the (?:user|customer|team|client|owner))"
_RULES = (
    r"(?:rules?|requirements?|restrictions?|constraints?|bans?|limits?|policy|freeze|"
    r"preferences?|instructions?)"
)
_FINE = r"(?:ok|okay|fine|alright|allowed|permitted)"

NO_RULE = re.compile(
    r"\bmust (?:not )?have (?:been|had|got|gone|lost|read|\w+ed)\b|\bnoch nie\b|\bn['’](?:ai|as|a|"
    r"avons|avez|ont|avais|avait) (?:jamais|pas)\b|\bnunca (?:hab\w+|he|ha|ia|vi)\b|"
    r"\bc['’]est toujours\b|\bquise decir\b.*|"
    r"\b(?:you|it|this|that|there|he|she|they|which|i|we) must be (?:kidding|joking|mad|"
    r"crazy|wrong|an? |some|because|missing|nice|hard|tired|fun|confus|difficult|frustrat)\w*|"
    r"\bI must (?:say|admit|confess)\b|\bmust see\b|"
    r"\bmust be \w+ because\b|\b(?:maybe|perhaps|probably)\b.*|\bneedless to say\b|"
    r"\byou (?:don['’]?t|do not)\b|\bi (?:suppose|guess|wonder)\b.*|\bi[’']ll\b.*|\bdo(?:n'?t|"
    r" not|nt) (?:worry|know|mind|think|understand|believe|care|bother(?! \w+ing)|you\b|we\b|"
    r"remember\b)|\bwhy (?:don'?t|do not|not)\b|\bnever ?mind\b|\bnever again\b|\b(?:should|"
    r"would|could|can) never (?:have|happen)\b|\bno (?:idea|problem|worries|need|one|matter|"
    r"thanks?|longer|wonder|doubt|way|luck|clue|rush|hurry|point|biggie)\b|\bno,? (?:i|it|that|"
    r"this|we|you|the|not|please|just|but)\b|\bkeep (?:going|trying|it up|on\b)|\bcan'?t wait\b|"
    r"\bmay or may not\b|\bnot (?:sure|only)\b|\bif only\b|\bonly (?:problem|thing|issue|"
    r"question)\b|\bimmer (?:noch|wieder|mehr)|\bwie immer\b|\bmuss (?:ein|wohl|am|an)\b|"
    r"\bes muss\b|\b(?:ich|wir) (?:muss|müssen|soll)\w*|\bnicht (?:nur|sicher)\b|"
    r"\bkeine (?:ahnung|sorge|eile)\b|\btoujours pas\b|\b(?:je|il|ça) doi[st]\b(?= y| être)|"
    r"\bje dois\b|\bpas de (?:souci|problème)\b|\bcomo siempre\b|\btengo que\b|\bdebe ser un\b|"
    r"\bno (?:sé|entiendo|funciona|pasa nada)\b|\bnão (?:sei|entendo|funciona)\b|不要紧|别担心|"
    r"不知道|没关系|注意到|知らない|わからない|かもしれない|問題ない",
    re.I,
)
"""Turns of speech that hold a rule's words and are none."""
REPORTED = re.compile(
    r"\b(?:says?|said|wrote|writes|claims?|claimed|reads|read|tells?|told|asks?|asked|prints?|"
    r"printed|shows?|saying|stating|mentions?|error|message|title|subject|sagt|schreibt|dit|dice|"
    r"diz)\b.{0,20}(?:[\"“«`]|(?<!\w)')|(?:说|写|写着|言って|書いて).{0,6}[“「『]",
    re.I,
)
"""Words that hand on what another says, in quotation marks."""
ASKS_FIRST = any_of(
    rf"without (?:asking|checking|telling|consulting|confirming)|(?:wait for|get|needs?|requires?|"
    rf"ask for|with(?:out)?|after) (?:(?:[\w'’]+ ){{0,4}}{_CONSENT}|(?:my|our) ok(?:ay)?)",
    rf"(?:ask|check with|confirm with|consult|tell|inform|notify|warn|show) (?:{_ME}|"
    r"(?-i:[A-Z])\w+)\b.{0,80}\b(?:before|first|prior to|if you|in doubt|beforehand)",
    r"before .{2,80}\b(?:ask|check with|consult|confirm (?:it )?with|tell|get (?:my|an?))",
    r"let me (?:know|review|see|approve|check|confirm)\b.{0,60}\b(?:before|first)|(?:hold off|"
    r"wait)\b.{0,60} (?:until|till) (?:I|we)\b|(?:until|unless) (?:I|we) (?:say|tell|ask|confirm|"
    r"approve|give|ok|okay|agree|explicitly)|(?:in doubt|unsure|not sure|is unclear),? (?:please |"
    r"always )?ask|(?:always|please) ask me|ask (?:first|before)|goes? through me|"
    r"run .{2,30} (?:by|past) me|only (?:after|with|if|when|once) (?:I|my|we|our|the (?:user|"
    r"customer))\b.{0,40}",
    r"frag(?:e|en Sie)? (?:\w+ )?(?:mich|uns|erst|vorher|zuerst)|ohne (?:\w+ ){0,2}(?:zu fragen|"
    r"Rück\w+|Zustimmung|Erlaubnis|Freigabe)|(?:meine|unsere) (?:Freigabe|Zustimmung|Erlaubnis|"
    r"Bestätigung)|nach Rücksprache|vorher (?:\w+ )?(?:fragen|bestätigen|nachfragen)",
    r"demande[zr]?(?:-| )?(?:moi|mon|ma|nous|d'abord)|sans (?:me (?:demander|consulter|prévenir)|"
    r"demander|validation)|(?:mon|ma|notre) (?:accord|autorisation|permission|feu vert)|"
    r"consulte[zr]?-moi",
    r"(?:pregúnta|consúlta|píde)(?:me|nos)|sin (?:preguntar|consultar)(?:me)?|mi (?:permiso|"
    r"aprobación|autorización|confirmación|visto bueno)|pergunte(?:-me)?|sem (?:me )?(?:perguntar|"
    r"consultar)|minha (?:permissão|aprovação|autorização|confirmação)|confirme comigo",
    other="先(?:问|询问|征求|跟我|和我|经)|未经|问我|(?:我|用户|客户)的?(?:同意|批准|确认|许可)|"
    "征得|(?:先に|事前に|まず|必ず)(?:私に)?(?:聞|尋|相談|確認)|前に.{0,6}(?:確認|聞|相談)|"
    "(?:許可|承認)(?:なく|なし|を)|私に(?:聞|確認|相談)|無断で",
)
APPROVES = any_of(
    r"you (?:may|can|(?:are |'re )(?:allowed|free|authori[sz]ed|permitted) to|have (?:my|our) "
    r"(?:permission|approval|ok|okay|consent) to)(?: also| now| just| safely| again| go ahead and)*"
    rf" {ACTS}\b.*",
    r"(?:feel free to|go ahead and|I(?:['’]m| am) (?:fine|ok|okay|happy) with|i (?:approve|allow|"
    r"authori[sz]e|permit)|approved|permission (?:to|granted)|(?:it is|it's|that's|is) (?:ok|okay|"
    rf"fine|alright|allowed)(?: now)? (?:to|if you|for you to) (?:\w+ )?{ACTS})\b.+",
    r"(?:du darfst|Sie dürfen|ihr dürft)(?! (?:nicht|nie|kein))|ich (?:erlaube|genehmige)|"
    r"(?:du kannst|Sie können) .{2,60}(?:löschen|pushen|mergen|überschreiben|stornieren|ändern|"
    r"senden)",
    r"(?:tu peux|vous pouvez|je t'autorise|je vous autorise) (?:\w+ )?(?:supprimer|effacer|pousser|"
    r"fusionner|modifier|envoyer|rembourser|annuler|à).*",
    r"(?:puedes|puede usted|te autorizo a|você pode|pode) (?:\w+ )?(?:borrar|eliminar|subir|"
    r"fusionar|modificar|cambiar|enviar|cancelar|reembolsar|apagar|excluir|alterar|mudar).*",
    other="(?<!不)可以(?:删除|推送|合并|覆盖|部署|修改|取消|退款|发送)|允许你|批准你|授权你|"
    "しても(?:いい|よい|構)|許可します|承認します",
)
FORBIDS = any_of(
    rf"{_TOLD}(?:must ?n[o']t|shall not|should ?n[o']t|may not)(?! (?:have|be (?:hard|too))\b)|"
    r"you can(?:no|')t|(?:must|may|should) never|(?:is|are|be) (?:strictly )?(?:forbidden|"
    r"prohibited|not allowed|not permitted|off[- ]limits|read-only|out of bounds|frozen|"
    r"confidential)|hands off|(?:nobody|no one) (?:\w+ ){0,4}(?:may|can|should|must)|"
    r"nothing (?:may|can|should|must|gets?|will|goes|leaves)|(?:make|do) no changes|"
    r"under no circumstances|at no time|not allowed to|leave .{2,60} (?:alone|as (?:it )?is|"
    r"as they are|untouched|unchanged)|(?:keep|stay) (?:away from|out of|off)",
    r"^keine? \w+|nie|niemals|keinesfalls|auf keinen Fall|(?:darf|darfst|dürfen|soll|sollst|"
    r"sollten?) (?:\w+ ){0,6}?(?:nicht|nie|niemals|keine?\w*)|verboten|untersagt|vermeide\w*|"
    r"bitte (?:\w+ ){0,5}(?:nicht|keine?\w*)|Finger weg",
    r"jamais|interdit\w*|il ne faut pas|n[e'] ?(?:doi\w+|devez|peu\w+) (?:pas|plus)|évite[rz]?",
    r"nunca|jamás|prohibid[oa]s?|evit[ae]r?|no (?:se )?(?:debe[ns]?|puede[ns]?|permite\w*)|"
    r"proibid[oa]s?|não (?:se )?(?:deve[mn]?|pode[mn]?)",
    other=_OPENS + rf"(?:never(?! mind) {_PAST}"
    r"|(?:do not|don['’]?t),? (?!forget|hesitate|get me|have (?:my|the|any|an?)\b|need\b|want\b|"
    r"like\b|see\b)|avoid |refrain from |(?:stop|quit) \w+ing\b|exclude |no (?!more|less|fewer|"
    r"later|errors?|results?|output|response|answers?|changes?|effect|match|success|such|good|"
    r"issues?|tests?)(?=\w{3,})(?![^,.;]{0,60}\b(?:is|are|was|were|has|have|needed|required|"
    r"necessary|found)\b(?! (?:allowed|permitted))))"
    # An order that ends in its "not", as German, French and Spanish have them.
    r"|(?:^|[,;:]\s*|\bbitte )(?!das|es|ich|er|wir|die|der|hier|leider|warum|noch|aber|man|ist|"
    r"sind|kann|geht)\w{3,}(?:e|t|n Sie|en) (?:[^.,]{2,60} )?(?:nicht|keine?\w{0,2})\b(?! mehr)|"
    r"(?:^|[,;:]\s*)n(?:e |['’])\w+ (?:[^.,]{0,40})?(?:pas|rien|aucun\w*)\b|(?:^|[,;:]\s*|"
    r"\bfavor,? )(?=.*\b(?:el|l[ao]s?|una?s?|de|en|con|que|por|para|me|te)\b)no (?:l[aoe]s? |me |"
    r"te |se )?\w{2,}(?:es|as|e|a|en|an|áis|éis)\b(?= )|(?:^|[,;:]\s*|\bfavor,? )não \w{2,}(?:e|a|"
    r"em|am)\b|不要|禁止|不得|严禁|切勿|请勿|不可以?|绝不|永远不|不准|不许|不能(?!用|运行|登录)|"
    r"(?<![特区分个性级类])别(?!的|人)|ないで|て(?:は)?(?:いけ|なら|だめ)|絶対に.{1,30}ない|決して|"
    r"(?:する|触る|使う|変える)な(?:[。!！]|$)|避けて",
)
PREFERS = any_of(
    r"I(?:['’]?d| would| do)? (?:\w+ly |much |still )?(?:prefer|rather(?! \w+ed)|favou?r)\b.*|"
    r"we (?:\w+ly )?prefer|my preference|preferably|preferred|I (?:do not|don['’]?t) (?:want|"
    r"like|need)\b.+|I (?:only|always) (?:want|need)|I (?:hate|love|dislike|enjoy|"
    r"can['’]?t stand) (?!it\b|this\b|that\b|how\b|the\b|to say)\w+|I (?:don['’]?t|do not|only|"
    r"never) (?:eat|drink|fly|smoke|drive|travel|buy)|refer to me|I want (?:you to (?:always|"
    r"never|not|only|keep)|all|every|your|answers|replies|no )|I(?:['’]d| would)? like (?:answers|"
    r"replies|short|brief|concise|you to (?:always|never|not|keep|only)|it when)",
    r"(?:keep|make) (?:your |the |all |my )?(?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|"
    r"e?mails?|messages?|explanations?|texts?|it|them|things) (?:\w+ )?(?:short|brief|concise|"
    r"simple|formal|polite|under|below|to|within|friendly|plain)\b.*|call me [A-Z]\w+|address me",
    r"ich (?:bevorzuge|mag (?:keine|lieber)|möchte (?:keine?|lieber|nur|immer)|hätte (?:gerne?|"
    r"lieber)|will (?:keine?|nur|immer))|am liebsten|nenn(?:e|en Sie)? mich|fasse? dich kurz|"
    r"(?:duze|sieze) mich",
    r"je préfère|je (?:ne )?veux (?:pas|que|uniquement)|de préférence|appelle[zr]?-moi|"
    r"(?:tutoie|vouvoie)-moi",
    r"prefiero|preferimos|no quiero|me gusta más|llámame|tutéame|prefiro|não quero|me chame",
    other=_OPENS
    + r"(?:(?:answer|reply|respond|speak|talk)(?: [\w']+)?(?: [\w']+)? (?:in|with|briefly|"
    r"formally|as if) |write (?:[\w-]+ ){0,4}in (?:the |a |an )?(?:imperative|plain|formal|active|"
    r"past|present|first|third|british|american|german|english|french|spanish|portuguese|chinese|"
    r"japanese|markdown|bullet|simple|short)\b|be (?:brief|concise|polite|formal|terse|friendly|"
    r"precise|short|kind|patient|informal)\b)|(?:^|\bbitte )(?:antworte|schreibe?|sprich|réponds|"
    r"répondez|écris|responde|contesta|escribe|responda|escreva)\w*(?:[ -](?:mir|moi|me))? "
    r"(?:\w+ )?(?:auf|in|mit|kurz|en|em|avec|con|com)\b|我(?:更)?(?:喜欢|偏好|希望)|我不(?:想|要)|"
    r"请用.{1,12}(?:回答|回复|写)|叫我|尽量|(?:が|ほうが)(?:いい|好き|望ましい)|してほしい|なるべく|"
    r"語で(?:答|返|書|お願い)|と呼んで",
)
REQUIRES = any_of(
    rf"{_TOLD}must(?! see| try)|{_TOLD}shall(?! we| I)|should (?:always|only)"
    r"|(?:all|every|each|any) (?:\w+ ){1,4}(?:should|needs?|requires?)|you should(?! have \w+e[dn]"
    r"\b| see\b)|you (?:have|need) to (?:\w+ ){1,4}(?:every|each|all|any|always)|"
    r"it['’]?s (?:very )?important (?:that|to)|stay (?:within|under|inside|below)|prefer \w+ over|"
    r"(?:is|are) (?:required|mandatory|obligatory)|required to|make sure|ensure|be sure to|"
    r"(?:don['’]?t forget|remember|take care) to|see to it|be careful (?:to|not)|stick (?:to|with)|"
    r"from now on|going forward|henceforth|for the rest of|(?:every|each) time|at all times|"
    r"as a rule|without exception|nothing (?:else|but)|(?:may|can|must|should|shall) only|"
    r"use only|only use|only ever|at (?:most|least) (?:\d|one|two|three)|no (?:more|later|fewer|"
    r"less) than|the rule is|house rule|(?:before|after) (?:every|each|any) \w+|(?:it|the|each|"
    r"every|all|our) (?:\w+ ){0,3}(?:needs?|has|have) to",
    r"stets|muss|müssen|musst|unbedingt|ab (?:jetzt|sofort)|künftig|in Zukunft|nur noch|"
    r"achte darauf|stell(?:e|en Sie)? sicher|jedes Mal|(?:vor|nach) jede[mr]|ausschließlich|immer",
    r"toujours|il faut|doi(?:t|vent|s)|devez|veille[rz]? à|assure[rz]?[- ]|désormais|dorénavant|"
    r"à partir de maintenant|uniquement|obligatoire\w*|chaque fois",
    r"siempre|debe[ns]?|tiene[ns]? que|hay que|asegúr[ae]\w+|a partir de ahora|de ahora en "
    r"adelante|únicamente|cada vez|sempre|deve[m]?|tem que|certifique-se|a partir de agora|"
    r"somente|apenas|obrigatóri[oa]",
    other=_OPENS
    + r"(?:always |(?:include|choose|write|mark|keep) .{2,40}\b(?:every|each|cheaper)\b|(?:write|"
    r"keep|limit|use|give|make) .{0,40}\d+ (?:words|sentences|lines|characters|bullets?|pages)|"
    r"only (?!one\b|two\b|three\b|four\b|\d|a few|some|because)(?=\w)|keep (?!in mind|me |going)|"
    r"limit |restrict |follow (?:the|our|my|these|this) |use (?![^.]{0,60} to (?:find|see|check|"
    r"get|look|search|fix|debug|open|go|navigate|visit|test|pay|cover)\b)(?![^.]{0,40} (?:this|"
    r"it|that)[.!]?$)[^.?]{2,120})|\bonly[.!]?$|, only\b|^(?:please )?(?!it|this|that|I|there|he|"
    r"she|they|we|not|the|if|but|and)\w+ only (?:\w|$)|^(?:for|in) (?:every|each) \w+|"
    r"^(?:whenever|if (?:an? |any |you )|when(?:ever)? you |before you |after you |"
    r"each time )[^,]{3,80}, (?:please |always )?(?!it|there|this|that|I|we|the|you)\w+ |"
    r"^(?:please )?(?:treat|mark|prefix|round|format|cite|sign|tag|escape|validate|"
    r"label) .{0,40}\b(?:every|each|all|any|everything|to \w+ decimals?)\b|必须|务必|总是|始终|"
    r"一律|只能|一定要|从现在起|从今以后|今后|每次|确保|仅限|只用|必ず|常に|いつも|しなければ|"
    r"すること|これからは|のみ|毎回|ようにして(?:ください|くれ)",
)
STATES = any_of(
    r"(?:remember|note|keep in mind|bear in mind|be aware|fyi|for (?:your )?(?:context|"
    r"information|reference)|mind you|know),?:? that\b.{8,}|(?:fyi|for (?:your )?(?:context|"
    r"information|reference)|keep in mind:|remember:|note:).{10,}|remember (?:the|our|my) .{4,60}"
    r" (?:is|are)|I(?:['’]m| am) (?:allergic|vegan|vegetarian|based in|located in|in the \w+ "
    r"time ?zone)\b.*|I live in",
    r"(?:denk(?:e|t)? daran|beachte|merk(?:e)? dir|zur Info|zu deiner Info)\b.{8,}|(?:Preise|"
    r"Beträge|Zeiten|Termine|Kunden|Rechnungen|Konten) (?:sind|gelten|verstehen sich)\b.*",
    r"(?:sache[sz]? que|note[rz]? que|n'oublie pas que|pour info)\b.{8,}|les (?:prix|montants|"
    r"heures|clients|factures|dates) sont\b.*",
    r"(?:recuerda que|ten en cuenta|lembre-se (?:de )?que|saiba que)\b.{8,}|(?:los|las|os|as) "
    r"(?:precios|importes|horas|clientes|facturas|preços|valores) (?:son|están|são|estão)\b.*",
    other=r"^(?!(?:I|it|this|that|he|she|they|there|you|we|what|which|here|who)\b)(?:[^,:;]{3,50} "
    rf"(?:always|never) {_PAST}\w{{2,}}|"
    r"[\w'’ -]{2,50} (?:is|are) (?:now |at |about )?(?:[$€£]?\d|(?-i:[A-Z]{2,}\d))|"
    r"[^,]{3,60} (?:is|are) [^,]{0,40}\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|(?!(?:the|"
    r"these|those|some|both|two|three|many|most|other|my|our)\b)(?:[a-z]+ ){0,2}[a-z]+s (?:are|"
    r"include|exclude) )|^(?:our|my|all|every|each) (?:\w[^,.]{0,50} )?(?:is|are|has|have|lives?|"
    r"starts?|ends?|begins?|runs?|counts?|means?|belongs?|includes?|excludes?|costs?|uses?|"
    r"contains?|closes?|opens?|lasts?|comes?|goes|go|expires?|applies|apply) (?=\S)"
    r"|^[A-Z]?[a-z]+s (?:in [^,.]{2,30} |for [^,.]{2,30} )?(?:are|include|exclude|start|end|"
    r"count|run|belong|expire) \S|^(?:unsere?|alle|jede[rs]?|meine?) .{2,50} (?:ist|sind|gelten|"
    r"haben|hat|liegt|liegen|beginnt|endet|gilt) \S|^(?:nos|notre|mes|mon|ma|tous les|toutes les|"
    r"chaque) .{2,50} (?:est|sont|a|ont) \S|^(?:nuestr[oa]s?|mis?|tod[oa]s l[oa]s|cada|"
    r"noss[oa]s?|meu|minha|tod[oa]s [oa]s) .{2,50} (?:es|son|está|están|tienen?|é|são|têm?) \S|"
    r"^(?:请)?记住|^注意[，,:：]|^我们的.{1,30}(?:是|为|在|都)|^所有.{1,20}(?:是|都|为)|"
    r"^价格.{0,6}(?:是|均|都|不含|含)|覚えて(?:おいて)?|(?:当社|弊社|私たち)の.{1,30}(?:です|は)|"
    r"^すべての.{1,30}(?:です|である)|税(?:抜|込|別)",
)
"""Statements about the world the work is in."""
NO_FACT = re.compile(
    r"\b(?:broken|fail\w*|wrong|slow|missing|empty|down|stuck|fine|good|great|ok|okay|bad|too|"
    r"still|now|back|gone|done|ready|working|weird|strange|incorrect|unclear|confus\w+|different|"
    r"same|ugly|nice|cool|perfect|annoying|(?:is|are|was|were|do|does|did) not|n't|really|very|"
    r"also|looking|getting|being|trying|going|just|maybe|error|errors|crash\w*|happen\w*|kaputt|"
    r"falsch|leer|fehlt|noch|cassé|roto|vacío|quebrado)\b|错|坏|失败|壊|エラー",
    re.I,
)
"""Words of a report on how things are just now: no fact that lasts."""
LIFTS = any_of(
    r"no longer (?:need\w*|required?|applies|apply|holds?|necessary|valid|matters?|in force|have|"
    r"has|forbidden|want)|(?:need|have|want|required?|necessary|appl(?:y|ies)|holds?|valid|"
    r"forbidden|important) .{0,60}\bany ?more|not? (?:\w+ ){0,6}any ?more|(?:may|can|ok|okay|"
    r"fine|allowed)\b.{0,80} after all|forget (?:about|what i said|the|that|my|it|all|everything|"
    r"every|any)|(?:ignore|disregard|drop|lift|cancel|scrap|waive|withdraw|remove) (?:the|my|"
    rf"that|this|all|what|our|any) (?:\w+ ){{0,5}}(?:{_RULES}|i said)|"
    r"scratch (?:that|the)|you (?:can|may) stop \w+ing|never ?mind (?:the|about|what|my|that)|"
    r"(?:you )?(?:don['’]?t|do not) (?:have|need) to|no need to|(?:it['’]?s|it is|that['’]?s) "
    rf"{_FINE}(?: now| again| to .{{2,80}}\b(?:now|again))|you (?:may|can)(?: .{{2,80}})? (?:now|"
    rf"again|from now on)\b.*|(?:is|are) (?:(?:now|again) {_FINE}|{_FINE} (?:now|again))|"
    r"(?:isn['’]?t|not) (?:necessary|needed|required)|"
    rf"{_RULES}\b.{{0,60}}(?:is (?:gone|off|over|lifted|obsolete)|no longer|(?:does not|"
    r"doesn['’]?t) apply)|(?:is|are) (?:lifted|over|obsolete|off the table)|(?:I|we) (?:changed "
    r"(?:my|our) minds?|take (?:that|it) back)",
    r"nicht mehr|vergiss|ignoriere|(?:darfst|kannst|dürfen) (?:\S+ ){0,4}?(?:jetzt|wieder|doch|"
    r"nun)|(?:brauchst|musst|müssen) (?:du |Sie )?(?:\w+ ){0,6}nicht|aufgehoben|nicht länger|"
    r"hinfällig|gilt nicht",
    r"n[e'] ?\w+ plus|oublie[rz]?|ignore[rz]?|plus besoin|(?:peux|pouvez) (?:\w+ )?(?:maintenant|"
    r"de nouveau|finalement)|finalement (?:tu|vous) (?:peux|pouvez)|n'as pas besoin|est levée?",
    r"ya no|olvida(?:te)?|ignora|ya puedes|(?:puedes|pode) (?:\w+ )?(?:ya|ahora|de nuevo|agora|"
    r"de novo)|no (?:hace falta|es necesario)|não precisa(?: mais)?|esqueça|já pode|não (?:é|vale) "
    r"mais",
    other="不再|不用再|无需再|忘掉|忽略(?:之前|这条|该)|取消.{0,8}(?:规则|限制|要求)|现在可以|"
    "可以.{1,20}了|不必再|作废|解除|もう.{0,30}(?:なくて|ない|不要|いい)|忘れて|取り消|撤回|"
    "必要は?(?:ない|ありません)|なくて(?:も)?(?:いい|よい|構)|不要です",
)
"""Words that take a rule back; of which rule, the other words say."""
EVERYTHING = any_of(
    r"(?:forget|ignore|drop|disregard|scrap) (?:all|every|any|everything)(?: of)?(?: (?:the|my|"
    rf"our|these|those|previous|earlier|other))* ?(?:{_RULES}|i said|i told you)\b.*",
)
"""Words that take all rules back."""
IMPERATIVE = re.compile(
    r"(?:\W|please |always |in general,? |by default,? )*(?:use|run|write|keep|add|put|prefer|"
    r"follow|test|name|commit|format|return|verify|check|confirm|obtain|ask|offer|transfer|deny|"
    r"refund|cancel|list|start|end|update|document|treat|store|place|validate|escape|wrap|log|"
    r"pin|import|export|group|sort|mark|target|open|close|create|include|explain|tell|inform|"
    r"report|respond|answer|greet|apologi[sz]e|escalate|hand|give|read|look up|quote|round|"
    r"charge|apply|require|limit|stop|wait|rebase|squash|branch|merge|deploy|build|install|cite|"
    r"summari[sz]e|leave|set|call|send|match|make|cover|mock|type|annotate|assume|identify|let|do|"
    r"handle|reject|refuse|accept|process)\b(?! (?:is|are|was|files?)\b)",
    re.I,
)
"""An order as a document of rules has it: the verb first."""
RULE_WORDS = frozenset(
    "actually correction sorry never always must mustn not don dont doesn avoid only ensure sure "
    "remember keep ask asking before first without permission approval allowed allow may can "
    "cannot could would shall should need needs rule rules requirement requirements restriction "
    "restrictions constraint said say told tell about forget ignore drop lift lifted longer "
    "anymore any more okay fine required necessary apply applies prefer preference from "
    "going forward again now please anything everything nothing all every each other than like "
    "want also still then when while ahead proceed do that this them they there these those "
    "what which immer nie niemals muss müssen darfst darf dürfen keine kein ohne vergiss mehr "
    "jetzt wieder erst vorher frage mich toujours jamais doit peux pouvez sans oublie plus "
    "maintenant siempre nunca debe puedes ahora olvida sin você pode agora sempre esqueça regel "
    "règle regla regra 必须 总是 不再 现在 在可 可以 以了 规则 忘掉 请勿 禁止 不得".split()
)
"""Words that say nothing of which rule is meant."""


# -------------------------------------------------------------- documents


OBEYS = re.compile(
    r"\b(?:follow|obey|adhere|comply|stick|according|apply|abide|respect|observe|bind|binding|"
    r"per|(?:rules?|guidelines?|conventions?|policy|policies|instructions?) (?:is|are|in|from|"
    r"live)|folge|befolge|halte|gemäß|suis|suivez|respecte[rz]?|selon|sigue|siga|según|cumple|"
    r"segundo)\b|遵守|遵循|按照|根据|従って|守って|に沿って",
    re.I,
)
READS = re.compile(
    r"\b(?:read|load|open|consult|check|see|use|fetch|call|get|start with|lies?|lade|lis|lisez|"
    r"lee|lea|leia|ler)\b|读|查看|加载|読",
    re.I,
)
DISOBEYS = re.compile(
    r"\b(?:ignore|disregard|(?:do not|don'?t|never|not) (?:follow|obey|apply|read|trust|use)|"
    r"untrusted|outdated|ignoriere|ignore[rz]?|ignora)\b|忽略|無視",
    re.I,
)
