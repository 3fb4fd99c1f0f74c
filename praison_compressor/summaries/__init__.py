"""Write the one message that stands for a segment, and judge it. In the order of its way:

- `protocol`: the values: `Brief` (what a summary is written from), `Summarizer`, `Written`
- `writer`: carry out a brief; on a failure (timeout, refusal) the next model, then static; have
  the model judge its text, where `verify_with` says so
- `drafting`: fit a brief to the model's window: whole, or in parts that are merged
- `prompts`: the requests' words, and messages rendered as text
- `retries`: ask until one text is accepted; circuit breaker; windows learned from refusals
- `litellm_client`: the model behind litellm, the only module that imports it
- `cache_marks`: where a provider's cache is told to keep a request
- `threads`: coroutines run from anywhere, calls that can be given up
- `validation`: what of an answer is accepted, names in it that are made up, marks of doubts
- `claims`: what a text claims, beside its witnesses
- `numbers`: whether the numbers of a claim have a witness
- `static`: the summary without a model, and the facts that a model's text lacks
"""
