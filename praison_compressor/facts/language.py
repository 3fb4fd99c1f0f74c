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
    r"next(?: step)?s?|still (?:failing|need|missing|to do|open)|remaining|todo|"
    r"to do|not yet|follow-?up|left to|blocked|pending|now (?:i|let me|let's)|let me now|"
    r"i'll now|needs? to",
    r"als nächstes|nächste[rsn]? schritte?|noch offen|noch nicht|fehlt noch|noch fehl|ausstehend",
    r"prochaine étape|ensuite|reste à|en attente|pas encore",
    r"siguiente paso|a continuación|pendientes?|falta|faltan|aún no|todavía|queda|próximo passo",
    other="下一步|接下来|待办|还需要|尚未|未完成|剩下|还没|次に|次は|残り|まだ|未完了|これから",
)


# -------------------------------------------------------------- rules


_OPENS = (
    r"(?:^\W*|[,;:(–—]\s*|\b(?:and|but|so|then|please|also|just|or|you|we|must|should|shall|will|"
    r"ok|okay|important|note|remember|reminder|rule|instead|actually|agents?|everyone)\W+)"
)
"""What stands before the verb of an order: nothing, a comma, "please", "you"; never "I" or "it"."""
_PAST = r"(?!\w*(?<!mb)(?<!ee)ed\b|got|had|was|were|did|saw|went|been|seen|heard|happen)"
"""Not a verb in the past: "we never deployed that" reports."""
_TOLD = r"(?<!\bit )(?<!\bi )(?<!\bthis )(?<!\bthat )(?<!\bthere )(?<!\bwhich )(?<!\bwhat )"
"""Behind a subject of which something can be required."""
_ACTS = (
    r"(?:delete|remove|drop|push|merge|deploy|overwrite|reset|refund|cancel|charge|send|book|pay|"
    r"commit|publish|release|restart|install|spend|issue|transfer|change|edit|modify|touch|rewrite|"
    r"close|rename|use|exceed|share|run|migrate|order|replace|rebase|revert|force|skip|call|"
    r"upgrade)"
)

NO_RULE = re.compile(
    r"\b(?:you|it|this|that|there|he|she|they|which|i|we) must (?:have|be (?:kidding|joking|mad|"
    r"crazy|"
    r"wrong|an? |some|because|missing|nice|hard|tired|fun|confus|difficult|frustrat))\w*"
    r"|\bI must (?:say|admit|confess)\b|\bmust see\b|\bneedless to say\b"
    r"|\bdo(?:n'?t| not|nt) (?:worry|know|mind|think|understand|believe|care|bother(?! \w+ing)|"
    r"you\b|we\b|remember\b)|\bwhy (?:don'?t|do not|not)\b|\bnever ?mind\b|\bnever again\b"
    r"|\b(?:should|would|could|can|must) never (?:have|happen)\b|\bno (?:idea|problem|worries|need|"
    r"one|matter|thanks?|longer|wonder|doubt|way|luck|clue|rush|hurry|biggie)\b|\bno,? "
    r"(?:i|it|that|this|we|you|the|not|please|just|but)\b|\bkeep (?:going|trying|it up|on\b)"
    r"|\bcan'?t wait\b|\bmay or may not\b|\bnot (?:sure|only)\b|\bif only\b|\bonly (?:problem|"
    r"thing|issue|question)\b"
    r"|\bimmer (?:noch|wieder|mehr)|\bwie immer\b|\bmuss (?:ein|wohl|am|an)\b|\bes muss\b"
    r"|\b(?:ich|wir) (?:muss|müssen|soll)\w*|\bnicht (?:nur|sicher)\b|\bkeine (?:ahnung|sorge|"
    r"eile)\b"
    r"|\btoujours pas\b|\b(?:je|il|ça) doi[st]\b(?= y| être)|\bje dois\b|\bpas de (?:souci|"
    r"problème)\b"
    r"|\bcomo siempre\b|\btengo que\b|\bdebe ser un\b|\bno (?:sé|entiendo|funciona|pasa nada)\b"
    r"|\bnão (?:sei|entendo|funciona)\b"
    r"|不要紧|别担心|不知道|没关系|注意到|特别|区别|别人|别的|个别|分别|性别|级别|类别"
    r"|知らない|わからない|かもしれない|問題ない",
    re.I,
)
"""Turns of speech that hold a rule's words and are none."""
REPORTED = re.compile(
    r"\b(?:says?|said|wrote|writes|claims?|claimed|reads|read|tells?|told|asks?|asked|prints?|"
    r"printed|"
    r"shows?|saying|stating|mentions?|error|message|title|subject|sagt|schreibt|dit|dice|"
    r"diz)\b.{0,20}"
    r"[\"“«'`]|(?:说|写|写着|言って|書いて).{0,6}[“「『]",
    re.I,
)
"""Words that hand on what another says, in quotation marks."""
ASKS_FIRST = any_of(
    r"without (?:asking|checking|telling|consulting|confirming|(?:my|our|his|her|their|the|an?|any|"
    r"first|explicit|prior|written|user|customer|human)\b.{0,30}(?:ok|okay|approv\w+|permission|"
    r"consent|confirmation|sign-?off|go-?ahead|review|say-?so|asking|checking)|approval|permission|"
    r"consent|confirmation)",
    r"get (?:my|our) (?:ok|okay)|(?:wait for|get|needs?|requires?|obtain|seek|ask for|await|"
    r"with(?:out)?|after) "
    r"(?:\w+ ){0,3}(?:approval|permission|consent|confirmation|sign-?off|go-?ahead|green light)",
    r"(?:ask|check with|confirm with|consult|tell|inform|notify|warn|alert|ping|show|clear it "
    r"with) "
    r"(?:me|us|the (?:user|customer|team|client|owner)|[A-Z]\w+)\b.{0,80}\b(?:before|first|prior "
    r"to|"
    r"if (?:you|anything|something|in doubt)|when in doubt|beforehand)",
    r"before .{2,80}\b(?:ask|check with|consult|confirm with|confirm it with|tell|get my|get an?) ?"
    r"(?:me|us|the (?:user|customer|team)|ok|okay|approval)?",
    r"let me (?:know|review|see|approve|check|confirm|look)\b.{0,60}\b(?:before|first)",
    r"run (?:it|this|that|them|everything|\w+ \w+) (?:by|past) me|unless I (?:say|tell|ask|approve|"
    r"explicitly|confirm|agree)|(?:always|please) ask (?:me|first|before)|ask (?:first|before)",
    r"only (?:after|with|if|when|once) (?:I|my|we|our|the (?:user|customer))\b.{0,40}",
    r"frag(?:e|en Sie)? (?:\w+ )?(?:mich|uns|erst|vorher|zuerst)|ohne (?:meine?|unsere?|vorherige|"
    r"ausdrückliche|Rück\w+|zu fragen|Zustimmung|Erlaubnis|Freigabe|mich zu fragen)\b.{0,30}|"
    r"(?:meine|unsere) (?:Freigabe|Zustimmung|Erlaubnis|Bestätigung)|nach Rücksprache|"
    r"vorher (?:\w+ )?(?:fragen|bestätigen|abklären|nachfragen)",
    r"demande[zr]?(?:-| )?(?:moi|mon|ma|nous|toujours|d'abord)|sans (?:me demander|mon accord|mon "
    r"autorisation|ma permission|me consulter|me prévenir|demander|validation)|(?:mon|notre) "
    r"(?:accord|approbation|autorisation|feu vert)|consulte[zr]?-moi",
    r"pregúnta(?:me|nos)|consúlta(?:me|nos)|pídeme|pregunta(?:r)? (?:antes|primero)|sin "
    r"(?:preguntar"
    r"(?:me)?|consultar(?:me)?|mi (?:permiso|aprobación|consentimiento|autorización|confirmación))|"
    r"mi (?:aprobación|visto bueno|confirmación|permiso)|pergunte(?:-me)?|sem (?:me )?(?:perguntar|"
    r"consultar)|(?:sem )?(?:a )?minha (?:permissão|aprovação|autorização|confirmação)|"
    r"confirme comigo",
    other="先(?:问|询问|征求|跟我|和我|经)|未经|问我|(?:我|用户|客户)(?:的)?(?:同意|批准|确认|许可)|征得|"
    "(?:先に|事前に|まず|必ず)(?:私に)?(?:聞|尋|相談|確認)|前に.{0,6}(?:確認|聞|相談)|許可(?:なく|なし|を得|を取)|承認(?:なし|を得|"
    "なく)|私に(?:聞|確認|相談)|無断で|確認を取",
)
APPROVES = any_of(
    rf"you (?:may|can|are (?:allowed|free|authori[sz]ed|permitted) to|'re (?:allowed|free|"
    rf"authori[sz]ed) to|have (?:my|our) (?:permission|approval|ok|okay|consent) to)"
    rf"(?: also| now| just| safely| again| go ahead and)* {_ACTS}\b.*",
    rf"(?:feel free to|go ahead and|i (?:approve|allow|authori[sz]e|permit)|approved|permission "
    rf"(?:to|granted)|(?:it is|it's|that's|is) (?:ok|okay|fine|alright|allowed)(?: now)? "
    rf"(?:to|if you|for you to) (?:\w+ )?{_ACTS})\b.+",
    r"(?:du darfst|Sie dürfen|ihr dürft)(?! (?:nicht|nie|kein))|ich (?:erlaube|genehmige)|"
    r"(?:du kannst|Sie können) .{2,60}(?:löschen|pushen|mergen|überschreiben|stornieren|ändern|"
    r"senden|ausführen)",
    r"(?:tu peux|vous pouvez|tu as le droit de|je t'autorise|je vous autorise) (?:\w+ )?"
    r"(?:supprimer|effacer|pousser|fusionner|modifier|envoyer|rembourser|annuler|écraser|à).*",
    r"(?:puedes|puede usted|podéis|te autorizo a|tienes permiso para|você pode|pode) (?:\w+ )?"
    r"(?:borrar|eliminar|subir|fusionar|modificar|cambiar|enviar|cancelar|reembolsar|apagar|"
    r"excluir|"
    r"alterar|mudar).*",
    other="(?<!不)可以(?:删除|推送|合并|覆盖|部署|修改|取消|退款|发送)|允许你|准许|批准你|授权你|"
    "(?:削除|変更|送信|上書き|マージ|プッシュ|デプロイ|キャンセル|返金)しても(?:いい|よい|構)|許可します|"
    "承認します",
)
FORBIDS = any_of(
    rf"{_TOLD}(?:must ?n[o']t|must ?nt|shall not|should ?n[o']t|may not)(?! (?:have|be (?:hard|"
    rf"too))\b)|"
    r"you can(?:no|')t|must never|may never|should never|can never be|(?:is|are|be) (?:strictly )?"
    r"(?:forbidden|prohibited|not allowed|not permitted|off[- ]limits|read-only|out of bounds|"
    r"taboo|"
    r"disallowed|banned|frozen|confidential)|hands off|under no circumstances|at no time|on no "
    r"account|"
    r"not allowed to|leave .{2,60} (?:alone|as is|untouched|unchanged|as it is|as they are)|"
    r"(?:keep|stay) (?:away from|out of|off)",
    r"(?:nie|niemals|keinesfalls|auf keinen Fall|unter keinen Umständen)|(?:darf|darfst|dürfen|"
    r"soll|"
    r"sollst|sollen|sollte|sollten) (?:\w+ ){0,6}?(?:nicht|nie|niemals|keine?\w*)|verboten|"
    r"untersagt|"
    r"vermeide\w*|bitte (?:\w+ ){0,5}(?:nicht|keine?\w*)|Finger weg",
    r"jamais|interdit\w*|il ne faut (?:pas|jamais)|n[e'] ?(?:doit|doivent|dois|devez|peut|peuvent|"
    r"peux)"
    r" (?:pas|jamais|plus)|évite[rz]?|ne surtout pas|défense de",
    r"nunca|jamás|prohibid[oa]s?|evit[ae]r?|no (?:se )?(?:debe[ns]?|puede[ns]?|permite\w*)|bajo "
    r"ningún"
    r" concepto|proibid[oa]s?|não (?:se )?(?:deve[mn]?|pode[mn]?)|em hipótese alguma|jamais",
    other=rf"{_OPENS}(?:never(?! mind) {_PAST}|(?:do not|don['’]?t|dont),? (?!forget|hesitate|get "
    rf"me|have "
    r"(?:my|the|any|an?)\b|need\b|want\b|like\b|see\b)|avoid |refrain from |stop \w+ing\b|no "
    r"(?!more|less|fewer|later|"
    r"errors?|results?|output|response|answers?|changes?|differences?|effect|reasons?|signs?|news|"
    r"match|"
    r"success|such|good|issues?|tests?)(?=\w{3,}(?! (?:is|are|was|were|has|needed|required|"
    r"necessary)\b)))"
    r"|(?:^|[,;:]\s*|\bbitte )(?!das|es|ich|er|wir|die|der|hier|leider|warum|noch|aber|ihr|man|ist|"
    r"sind|kann|geht)\w{3,}(?:e|t|n Sie|en) (?:[^.,]{2,60} )?(?:nicht|keine?\w{0,2})\b(?! mehr)"
    r"|(?:^|[,;:]\s*|\bplaît,? )n(?:e |['’])\w+ (?:[^.,]{0,40})?(?:pas|rien|aucun\w*)\b"
    r"|(?:^|[,;:]\s*|\bfavor,? )no (?:l[aoe]s? |me |te |se )?\w{2,}(?:es|as|e|a|en|an|áis|"
    r"éis)\b(?= )"
    r"|(?:^|[,;:]\s*|\bfavor,? )não (?:\w{2,}(?:e|a|em|am))\b"
    r"|不要|禁止|不得|严禁|切勿|请勿|不可以?|绝不|永远不|不准|不许|(?:你|都|也|就)?不能(?!用|运行|登录)|(?<![特区分个性级类])别(?!的|人)"
    r"|ないで|て(?:は)?(?:いけ|なら|だめ)|絶対に.{1,30}ない|決して|(?:する|触る|使う|変える)な(?:[。!！]|$)|避けて",
)
PREFERS = any_of(
    r"I(?:['’]?d| would| do)? (?:\w+ly |much |still )?(?:prefer|rather(?! \w+ed)|favou?r)\b.*|we "
    r"(?:\w+ly )?"
    r"prefer|my preference|preferably|preferred|I (?:do not|don['’]?t) (?:want|like|need)\b.+|I "
    r"(?:only|"
    r"always) (?:want|need)|I want (?:you to (?:always|never|not|only|keep)|all|every|your|answers|"
    r"replies|no )|I(?:['’]d| would)? like (?:answers|replies|short|brief|concise|you to (?:always|"
    r"never|not|keep|only)|it when)",
    r"(?:keep|make) (?:your |the |all |my )?(?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|"
    r"e?mails?|"
    r"messages?|explanations?|texts?|it|them|things) (?:\w+ )?(?:short|brief|concise|simple|formal|"
    r"polite|under|below|to|within|friendly|plain)\b.*|call me [A-Z]\w+|address me",
    r"ich (?:bevorzuge|mag (?:keine|lieber)|möchte (?:keine?|lieber|nur|immer)|hätte (?:gerne?|"
    r"lieber)|"
    r"will (?:keine?|nur|immer))|am liebsten|bevorzugt|nenn(?:e|en Sie)? mich|fasse? dich kurz|"
    r"duze mich|"
    r"sieze mich",
    r"je préfère|je (?:ne )?veux (?:pas|que|uniquement)|de préférence|appelle[zr]?-moi|tutoie-moi|"
    r"vouvoie-moi|j'aime mieux",
    r"prefiero|preferimos|no quiero|me gusta más|preferiblemente|llámame|tutéame|prefiro|"
    r"preferimos|"
    r"não quero|de preferência|me chame|chame-me",
    other=rf"{_OPENS}(?:(?:answer|reply|respond|speak|talk)(?: to)?(?: me)?(?: only| always)? "
    rf"(?:in|"
    r"with|briefly|formally|as if) |write (?:[\w-]+ ){0,4}in (?:the |a |an )?(?:imperative|plain|"
    r"formal|active|"
    r"past|present|first|third|british|american|german|english|french|spanish|italian|portuguese|"
    r"chinese|"
    r"japanese|markdown|bullet|lower|upper|simple|short)\b|be (?:brief|concise|polite|formal|"
    r"terse|friendly|precise|short|"
    r"kind|patient|informal)\b)"
    r"|(?:^|\bbitte )(?:antworte|schreibe?|sprich|réponds|répondez|écris|responde|contesta|escribe|"
    r"responda|escreva)\w*(?:[ -](?:mir|moi|me))? (?:\w+ )?(?:auf|in|mit|kurz|en|em|avec|con|com)\b"
    r"|我(?:更)?(?:喜欢|偏好|希望)|我不(?:想|要)|请用.{1,12}(?:回答|回复|写)|叫我|尽量"
    r"|(?:が|ほうが)(?:いい|好き|望ましい)|してほしい|なるべく|好み|語で(?:答|返|書|お願い)|と呼んで",
)
REQUIRES = any_of(
    rf"{_TOLD}must(?! see| try)|{_TOLD}shall(?! we| I)|{_TOLD}should (?:always|only|be|stay|"
    rf"remain|use|"
    r"contain|have|start|end|begin|keep|run|go|match|support|return|include|follow)(?! (?:fine|ok|"
    r"okay|good|"
    r"enough|easy|it\b|that|able|possible|great|nice))|you should|(?:is|are) (?:required|mandatory|"
    r"obligatory)|required to|make sure|ensure|be sure to|remember to|don['’]?t forget to|take "
    r"care to|"
    r"see to it|be careful (?:to|not)|stick (?:to|with)|from now on|going forward|henceforth|for "
    r"the rest"
    r" of|every time|each time|at all times|as a rule|without exception|nothing (?:else|but)|"
    r"(?:may|can|must|should|shall) only|use only|only use|only ever|at (?:most|least) (?:\d|one|"
    r"two|"
    r"three)|no (?:more|later|fewer|less) than|the rule is|house rule|(?:before|after) (?:every|"
    r"each|any)"
    r" \w+|(?:it|the|each|every|all) (?:\w+ )?(?:needs?|has|have) to",
    r"stets|muss|müssen|musst|unbedingt|ab (?:jetzt|sofort)|künftig|in Zukunft|nur noch|achte "
    r"darauf|"
    r"stell(?:e|en Sie)? sicher|jedes Mal|(?:vor|nach) jede[mr]|ausschließlich|immer",
    r"toujours|il faut|doi(?:t|vent|s)|devez|veille[rz]? à|assure[rz]?[- ]|désormais|dorénavant|à "
    r"partir "
    r"de maintenant|uniquement|impérativement|obligatoire\w*|chaque fois",
    r"siempre|debe[ns]?|tiene[ns]? que|hay que|asegúr[ae]\w+|(?:a partir|de) (?:de )?ahora(?: en "
    r"adelante)?|únicamente|obligatori[oa]|cada vez|sempre|deve[m]?|tem que|certifique-se|a "
    r"partir de "
    r"agora|somente|apenas|obrigatóri[oa]",
    other=rf"{_OPENS}(?:always |only (?=\w)|keep (?!in mind|me |going)|limit |restrict |"
    r"follow (?:the|our|my|these|this) |use (?![^.]{0,60} to (?:find|see|check|get|look|search|"
    r"fix|debug|open|go|"
    r"navigate|visit|test|pay|cover)"
    r"\b)(?![^.]{0,40} (?:this|it|that)[.!]?$)[^.?]{2,120})|\bonly[.!]?$|, only\b"
    r"|^(?:please )?(?!it|this|that|I|there|he|she|they|we|not|the|if|but|and)\w+ only (?:\w|$)"
    r"|^(?:whenever|if (?:an? |any |you )|when(?:ever)? you |before you |after you |each time "
    r")[^,]{3,80}, "
    r"(?:please |always )?(?!it|there|this|that|I|we|the|you)\w+ "
    r"|^(?:please )?(?:treat|mark|prefix|round|format|cite|sign|tag|escape|validate|label) .{0,40}"
    r"\b(?:every|each|all|any|everything|to \w+ decimals?)\b"
    r"|必须|务必|总是|始终|一律|只能|一定要|从现在起|从今以后|今后|每次|确保|仅限|只用"
    r"|必ず|常に|いつも|しなければ|すること|今後は?|これからは|のみ|毎回|ようにして(?:ください|くれ)",
)
_GENERIC = (
    r"(?:is|are|has|have|lives?|starts?|ends?|begins?|runs?|counts?|means?|belongs?|includes?|"
    r"excludes?|"
    r"costs?|uses?|contains?|closes?|opens?|lasts?|comes?|goes|go|expires?|applies|apply)"
)
STATES = any_of(
    r"(?:remember|note|keep in mind|bear in mind|be aware|fyi|for (?:your )?(?:context|information|"
    r"reference)|mind you|know),?:? that\b.{8,}|(?:fyi|for (?:your )?(?:context|information|"
    r"reference)|"
    r"keep in mind|remember|note):? .{10,}",
    r"I(?:['’]m| am) (?:allergic|vegan|vegetarian|based in|located in|in the \w+ time ?zone)\b.*|"
    r"I live in",
    r"(?:denk(?:e|t)? daran|beachte|merk(?:e)? dir|zur Info|zu deiner Info)\b.{8,}|(?:Preise|"
    r"Beträge|"
    r"Zeiten|Termine|Kunden|Rechnungen|Konten) (?:sind|gelten|verstehen sich|beginnen|enden)\b.*",
    r"(?:sache[sz]? que|note[rz]? que|rappelle-toi que|n'oublie pas que|pour info)\b.{8,}|les "
    r"(?:prix|montants|heures|clients|factures|dates) sont\b.*",
    r"(?:recuerda que|ten en cuenta|para que sepas|lembre-se (?:de )?que|saiba que)\b.{8,}|(?:los|"
    r"las|os|as)"
    r" (?:precios|importes|horas|clientes|facturas|preços|valores) (?:son|están|são|estão)\b.*",
    other=r"^(?!I\b|it\b|this\b|that\b|he\b|she\b|they\b|there\b|you\b|we\b)[^,:;]{3,50} "
    r"(?:always|never) \w{2,}"
    rf"|^(?:our|my|all|every|each) (?:\w[^,.]{{0,50}} )?{_GENERIC} (?=\S)"
    r"|^[A-Z]?[a-z]+s (?:in [^,.]{2,30} |for [^,.]{2,30} )?(?:are|include|exclude|start|end|count|"
    r"run|"
    r"belong|expire) \S"
    r"|^(?:unsere?|alle|jede[rs]?|meine?) .{2,50} (?:ist|sind|gelten|haben|hat|liegt|liegen|"
    r"beginnt|"
    r"endet|gilt) \S|^(?:nos|notre|mes|mon|ma|tous les|toutes les|chaque) .{2,50} (?:est|sont|a|"
    r"ont) \S"
    r"|^(?:nuestr[oa]s?|mis?|tod[oa]s l[oa]s|cada|noss[oa]s?|meu|minha|tod[oa]s [oa]s) .{2,50} "
    r"(?:es|son|"
    r"está|están|tienen?|é|são|têm?) \S"
    r"|^(?:请)?记住|^注意[，,:：]|^我们的.{1,30}(?:是|为|在|都)|^所有.{1,20}(?:是|都|为)|^价格.{0,6}(?:是|均|都|不含|含)"
    r"|覚えて(?:おいて)?|^参考までに|(?:当社|弊社|私たち)の.{1,30}(?:です|は)|^すべての.{1,30}(?:です|である)"
    r"|税(?:抜|込|別)",
)
"""Statements about the world the work is in."""
NO_FACT = re.compile(
    r"\b(?:broken|fail\w*|wrong|slow|missing|empty|down|stuck|fine|good|great|ok|okay|bad|too|"
    r"still|now|"
    r"back|gone|done|ready|working|weird|strange|odd|incorrect|unclear|confus\w+|different|same|"
    r"ugly|nice|"
    r"cool|perfect|annoying|not|n't|really|very|also|looking|getting|being|trying|going|just|"
    r"maybe|error|"
    r"errors|crash\w*|happen\w*|kaputt|falsch|leer|fehlt|noch|cassé|roto|vacío|quebrado)\b"
    r"|错|坏|失败|壊|エラー",
    re.I,
)
"""Words of a report on how things are just now: no fact that lasts."""
LIFTS = any_of(
    r"no longer (?:need\w*|required?|applies|apply|holds?|necessary|valid|matters?|in force|have|"
    r"has|"
    r"forbidden|want)|(?:need|have|want|required?|necessary|appl(?:y|ies)|holds?|valid|forbidden|"
    r"important) .{0,60}\bany ?more|not? (?:\w+ ){0,6}any ?more|(?:may|can|ok|okay|fine|"
    r"allowed)\b.{0,80} "
    r"after all|forget (?:about|what i said|the|that|my|it|all|everything|every|any)|(?:ignore|"
    r"disregard|"
    r"drop|lift|cancel|scrap|waive|withdraw|remove) (?:the|my|that|this|all|what|our|any) (?:\w+ "
    r"){0,5}"
    r"(?:rules?|requirements?|restrictions?|constraints?|bans?|limits?|policy|freeze|preferences?|"
    r"instructions?|i said)|scratch (?:that|the)|never ?mind (?:the|about|what|my|that)|(?:you "
    r")?(?:don['’]?t|do"
    r" not) (?:have|need) to|no need to|(?:it['’]?s|it is|that['’]?s) (?:ok|okay|fine|alright|"
    r"allowed)(?: now| "
    r"again)|you (?:may|can)(?: now| again)\b.*|you (?:may|can) .{2,80}\b(?:now|again|from now "
    r"on)|(?:is|"
    r"are) (?:now|again) (?:allowed|ok|okay|fine|permitted)|(?:is|are) (?:allowed|ok|okay|fine|"
    r"permitted) "
    r"(?:now|again)|(?:isn['’]?t|not) (?:necessary|needed|required)|(?:rules?|restriction|"
    r"requirement|"
    r"constraint|freeze|ban|policy|limit|embargo|preference)\b.{0,60}(?:is (?:gone|off|over|lifted|"
    r"obsolete)|no longer|(?:does not|doesn['’]?t) apply)|(?:is|are) (?:lifted|over|obsolete|off "
    r"the table)|"
    r"I (?:changed my mind|take (?:that|it) back)",
    r"nicht mehr|vergiss|ignoriere|(?:darfst|kannst|dürfen) (?:\w+ )?(?:jetzt|wieder|doch|nun)|"
    r"(?:brauchst|"
    r"musst|müssen) (?:du |Sie )?(?:\w+ ){0,6}nicht|aufgehoben|nicht länger|hinfällig|gilt nicht",
    r"n[e'] ?\w+ plus|oublie[rz]?|ignore[rz]?|plus besoin|n'est plus|(?:peux|pouvez) (?:\w+ "
    r")?(?:maintenant|"
    r"de nouveau|finalement)|finalement (?:tu|vous) (?:peux|pouvez)|n'as pas besoin|est levée?",
    r"ya no|olvida(?:te)?|ignora|ya puedes|(?:puedes|pode) (?:\w+ )?(?:ya|ahora|de nuevo|agora|de "
    r"novo)|no "
    r"(?:hace falta|es necesario)|não precisa(?: mais)?|esqueça|já pode|não é mais|não vale mais",
    other="不再|不用再|无需再|忘掉|忽略(?:之前|这条|该)|取消.{0,8}(?:规则|限制|要求)|现在可以|可以.{1,20}了|不必再|作废|解除|"
    "もう.{0,30}(?:なくて|ない|不要|いい)|忘れて|取り消|撤回|解除|必要は?(?:ない|ありません)|なくて(?:も)?(?:いい|よい|構)|不要です",
)
"""Words that take a rule back; of which rule, the other words say."""
EVERYTHING = any_of(
    r"(?:forget|ignore|drop|disregard|scrap) (?:all|every|any|everything)(?: of)?(?: (?:the|my|"
    r"our|these|those|"
    r"previous|earlier|other))* ?(?:rules?|requirements?|restrictions?|instructions?|preferences?|"
    r"constraints?|i said|i told you)\b.*",
)
"""Words that take all rules back."""
IMPERATIVE = re.compile(
    r"(?:\W|please |always |in general,? |by default,? )*(?:use|run|write|keep|add|put|prefer|"
    r"follow|test|name|"
    r"commit|format|return|verify|check|confirm|obtain|ask|offer|transfer|deny|refund|cancel|list|"
    r"start|"
    r"end|update|document|treat|store|place|validate|escape|wrap|log|pin|import|export|group|sort|"
    r"mark|"
    r"target|open|close|create|include|explain|tell|inform|report|respond|answer|greet|"
    r"apologi[sz]e|"
    r"escalate|hand|give|read|look up|quote|round|charge|apply|require|limit|stop|wait|rebase|"
    r"squash|"
    r"branch|merge|deploy|build|install|cite|summari[sz]e|prefix|suffix|leave|set|call|send|match|"
    r"make|"
    r"cover|mock|type|annotate|assume|authenticate|identify|let|do|handle|reject|refuse|accept|"
    r"process)"
    r"\b(?! (?:is|are|was|file|files)\b)",
    re.I,
)
"""An order as a document of rules has it: the verb first."""
RULE_WORDS = frozenset(
    "never always must mustn not don dont doesn avoid only ensure sure remember keep ask asking "
    "before "
    "first without permission approval allowed allow may can cannot could would shall should need "
    "needs "
    "rule rules requirement requirements restriction restrictions constraint said say told tell "
    "about "
    "forget ignore drop lift lifted longer anymore any more okay fine required necessary required "
    "apply "
    "applies prefer preference from going forward again now please anything everything nothing "
    "all every "
    "each other than like want also still than then when while ahead proceed do that this them "
    "they there these those what which "
    "immer nie niemals muss müssen darfst darf dürfen keine kein ohne vergiss mehr jetzt wieder "
    "erst "
    "vorher frage mich toujours jamais doit peux pouvez sans oublie plus maintenant siempre nunca "
    "debe "
    "puedes ahora olvida sin você pode agora sempre esqueça regel règle regla regra "
    "必须 总是 不再 现在 在可 可以 以了 规则 忘掉 请勿 禁止 不得".split()
)
"""Words that say nothing of which rule is meant."""


# -------------------------------------------------------------- documents


OBEYS = re.compile(
    r"\b(?:follow|obey|adhere|comply|stick|according|apply|abide|respect|observe|bind|binding|per|"
    r"(?:rules?|guidelines?|conventions?|policy|policies|instructions?) (?:is|are|in|from|live)|"
    r"folge|"
    r"befolge|halte|gemäß|suis|suivez|respecte[rz]?|selon|sigue|siga|según|cumple|segundo)\b|"
    r"遵守|遵循|按照|根据|従って|守って|に沿って",
    re.I,
)
READS = re.compile(
    r"\b(?:read|load|open|consult|check|see|use|fetch|call|get|start with|lies?|lade|lis|lisez|"
    r"lee|lea|"
    r"leia|ler)\b|读|查看|加载|読",
    re.I,
)
DISOBEYS = re.compile(
    r"\b(?:ignore|disregard|(?:do not|don'?t|never|not) (?:follow|obey|apply|read|trust|use)|"
    r"untrusted|"
    r"outdated|ignoriere|ignore[rz]?|ignora)\b|忽略|無視",
    re.I,
)
