"""Words with exact spans, what a hidden word becomes, and random numbers drawn from content."""
