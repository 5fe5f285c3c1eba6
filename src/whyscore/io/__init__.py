"""Readers and writers: files to data sets, results to files; every complaint names file and line.

| module | what it does |
|---|---|
| `files`, `unpacking`, `atomic` | lines out of plain and packed files, with guards; files written whole or not at all |
| `text`, `tables`, `jsonl`, `frames` | line-aligned texts, TSV and CSV, JSON lines, data frames |
| `reading` | any single file: the format is chosen by suffix or content |
| `columns`, `gathering` | which column plays which role; rows become entries |
| `validation` | what looks wrong in a data set before any work is done |
| `records`, `spans` | whyscore's own JSON lines, written and read back |
| `tabular` | result tables as text, TSV, CSV, Markdown, LaTeX, JSON |
| `sample` | the real data that ships with whyscore |
"""
