"""Quality estimators that ship with whyscore: a score, and an error probability for each word of both sides."""
