"""How facts are got: live probes and readers of pasted text. Knows no rule and never imports the engine."""
