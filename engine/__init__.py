"""How it is reasoned: rule IR, native and durable engines, justifications.

May live here: inference over rules and facts of any domain. Must not: GPUs, YAML, probing or output.
"""
