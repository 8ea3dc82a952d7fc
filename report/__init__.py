"""The report model and its renderers. Knows neither GPUs nor rules: it shows what it is given."""
