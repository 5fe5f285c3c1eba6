"""COMET, CometKiwi, UniTE and xCOMET: checkpoint, network, error spans and the metric itself."""
