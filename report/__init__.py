"""The report model and its renderers.

May live here: the output contract and how it is shown. Must not: GPUs or rules; it shows what it is given.
"""
