"""How good is a metric, an explainer or a span predictor? Agreement with human judgements."""
