"""Write the message that replaces a segment, and decide which answers become one.

In the order in which data passes them:

- `protocol`: the values: `Brief` (everything a summary is written from), `Summarizer`, `Written`
- `writer`: carry out a brief by one model after the other, or without a model
- `splitting`: fit a brief to the model's window: whole, or in parts that are merged
- `prompts`: the requests' words, and messages rendered as text
- `retries`: ask until one text is accepted; circuit breaker; windows learned from refusals
- `reasoning`: strip what a model thought before it wrote
- `validation`: accept or refuse an answer by what can be measured
- `litellm_client`: the model behind litellm; the only module that imports litellm
"""
