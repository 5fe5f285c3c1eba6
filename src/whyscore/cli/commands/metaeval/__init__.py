"""`whyscore metaeval`: how good is a metric or an explainer?"""

from whyscore.cli.commands.metaeval import faithfulness, scores, spans, words

EXAMPLES = """\
examples:
  whyscore metaeval scores summeval.csv --human expert_relevance --metric rouge-1_f1 bertscore_f1 --level system
  whyscore metaeval scores --sample --human mqm -m chrf bleu --level segment
  whyscore metaeval scores -h
"""

COMMANDS = {
    "scores": ("agreement of metrics with human scores: levels, tests, clusters, sentinels", scores),
    "words": ("agreement of word scores with the words that people marked", words),
    "spans": ("agreement of predicted error spans with those that people marked", spans),
    "faithfulness": ("whether explanations name the words that made the score", faithfulness),
}
