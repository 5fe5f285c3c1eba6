"""Eval4NLP 2021 (Fomicheva et al. 2021): what its organisers need, and its participants as recipes."""
