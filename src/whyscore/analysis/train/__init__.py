"""Train an explainable quality estimator: labels, examples, network, card."""
