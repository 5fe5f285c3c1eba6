"""Large language models as judges."""
