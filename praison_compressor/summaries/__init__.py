"""Write a segment's summary; refuse unusable answers.

Each module imports only from those below it:

- `writer`: ask models in turn, else quote; fit prose and quotes into a budget
- `breaker`: cooldowns of models that fail
- `segment_parts`: ask for a long segment in parts, and merge their summaries
- `model_calls`: ask one model until a text is accepted
- `litellm_client`: requests through litellm
- `validation`: accept or refuse an answer by its words
- `reasoning`: strip a model's reasoning from an answer
- `prompts`: the prompts, and messages as text
- `protocol`: the values: `Brief` (the input of a summary), `Summarizer`, `SegmentText`
"""
