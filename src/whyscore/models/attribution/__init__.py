"""Looking inside a network: what a metric must show, attention weights, and watching the blocks of an encoder."""
