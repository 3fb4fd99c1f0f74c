"""Write a segment's summary; refuse answers that are none.

In the order in which data passes the modules:

- `protocol`: the values: `Brief` (all input of a summary), `Summarizer`, `SegmentText`
- `writer`: ask one model after another, else quotes alone; prose and quotes, fitted into a budget
- `breaker`: the pause of a model that failed, longer after each failure in a row
- `segment_parts`: ask for a long segment in parts, and merge their summaries
- `prompts`: the prompts, and messages as text
- `model_calls`: ask one model until a text is accepted; learn its window
- `litellm_client`: the auxiliary model's answers, and routes of the host's requests, by litellm
- `reasoning`: strip a model's reasoning from its answer
- `validation`: accept or refuse an answer; compare its words, and their order, with the segment's
"""
