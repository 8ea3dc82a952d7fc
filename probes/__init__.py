"""How facts are got: live probes and readers of pasted text.

May live here: looking, and turning text into facts. Must not: rules, or any import of the engine or the knowledge.
"""
