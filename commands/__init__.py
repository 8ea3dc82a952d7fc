"""The commands of the command line: arguments in, a rendered result out.

May live here: options, reading input files, choosing a renderer, exit codes. Must not: any logic of diagnosis, any
words (knowledge/messages.yaml). Everything but click is imported inside the command that needs it, so that `--help`
and `--version` answer at once.
"""
