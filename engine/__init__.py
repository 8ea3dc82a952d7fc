"""How it is reasoned: rule IR, native and durable engines, justifications. Knows nothing about GPUs, YAML or output."""
