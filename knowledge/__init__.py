"""What is known: the vocabulary, the catalogs, the rules and fixes as YAML, and the code that reads and checks them.

May live here: data, its models, loading and checks. Must not: inference, probing, output.
"""
