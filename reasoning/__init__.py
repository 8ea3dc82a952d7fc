"""The wiring between facts, knowledge, engine and report: merging, sessions, ranking of causes, fixes, proofs.

May live here: mechanisms that hold for any domain. Must not: GPUs, product names, thresholds, texts (all are data in
`knowledge/`), parsing of input or rendering of output.
"""
