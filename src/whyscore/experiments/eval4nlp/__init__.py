"""The organisers' side of Eval4NLP 2021: data, annotators, ranking, categories of errors."""
