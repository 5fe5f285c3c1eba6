"""Metrics that count: BLEU, chrF, TER, ROUGE and token F1, with the word scores behind their matches."""
