"""How to boost a metric, learnt from human judgements, and whether it helps."""
