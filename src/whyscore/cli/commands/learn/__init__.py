"""Commands that learn from parallel text: `whyscore learn-lexicon` and `whyscore learn-map`."""
