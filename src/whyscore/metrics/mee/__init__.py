"""MEE, MEE2 and MEE4: words matched exactly, by root or by meaning, with a syntactic and a contextual part."""
