"""From the importances of a segment's words to one number: power means and other means."""
