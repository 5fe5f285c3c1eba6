"""Files to data sets and results to files; every error names file and line.

| module | what it does |
|---|---|
| `reading` | any single file: the format is chosen by suffix or content; data frames |
| `formats/` | one module per format: text, tables, JSON lines, XLIFF, TMX, WMT folders, MQM, Eval4NLP, span dialects |
| `files`, `writing` | lines out of plain and packed files, with limits; files written whole or not at all |
| `columns`, `gathering`, `naming` | which column plays which role; rows become entries; names of systems |
| `checks`, `style` | what looks wrong in a data set, and in which file and line; systematic differences in style |
| `records`, `dataset`, `codec` | the JSON lines that whyscore writes and reads back |
| `realigning` | translations with other line breaks, cut into the segments of the reference |
"""
