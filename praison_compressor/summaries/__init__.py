"""Write a segment's summary; refuse unusable answers.

In the order in which data passes the modules:

- `protocol`: the values: `Brief` (the input of a summary), `Summarizer`, `SegmentText`
- `writer`: ask models in turn, else quote; fit prose and quotes into a budget
- `breaker`: cooldowns of models that fail
- `segment_parts`: ask for a long segment in parts, and merge their summaries
- `prompts`: the prompts, and messages as text
- `model_calls`: ask one model until a text is accepted
- `litellm_client`: requests through litellm
- `reasoning`: strip a model's reasoning from an answer
- `validation`: accept or refuse an answer by its words
"""
