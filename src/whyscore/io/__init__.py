"""Readers and writers: files to data sets, results to files; every complaint names file and line.

| module | what it does |
|---|---|
| `reading` | any single file: the format is chosen by suffix or content |
| `text`, `tables`, `jsonl`, `frames`, `datasets` | aligned texts, TSV, CSV, JSON lines, data frames, our own records |
| `xliff`, `xliff_data`, `xliff_marks`, `tmx` | translation jobs and memories |
| `wmt`, `eval4nlp`, `gold_data`, `mqm` | folders and ratings of shared tasks |
| `files`, `unpacking` | lines out of plain and packed files, with guards |
| `columns`, `conversion`, `gathering`, `bulk` | which column plays which role; rows become entries, many at once |
| `references`, `naming`, `drift`, `spans` | empty or transposed references, system names, files out of step, spans |
| `validation`, `characters`, `located` | what looks wrong in a data set, and in which file and line |
| `records`, `recording`, `strict` | whyscore's own JSON lines: header and reader, writers, strict JSON |
| `tabular`, `atomic` | result tables in every format; files written whole or not at all |
| `sample` | the real data that ship with whyscore |
"""
