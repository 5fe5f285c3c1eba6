"""Longest common subsequences, with whole columns of the table in one Python integer.

After Hyyrö (2004), "Bit-parallel LCS-length computation revisited": bit i of a row is 0 where the length grows at
reference word i, so one row costs a handful of integer operations, whatever the number of words up to some hundreds.

1. For each word, a mask with a bit at every place where the reference has it.
2. For each hypothesis word, row = (row + hits) | (row - hits) with hits = row & mask of the word.
3. The length is the number of zeros; the length up to reference word i is the number of zeros below bit i.
"""

from collections.abc import Mapping, Sequence


def masks(reference: Sequence[str]) -> dict[str, int]:
    """Return for each word of the reference the bits of its places."""
    result: dict[str, int] = {}
    for place, word in enumerate(reference):
        result[word] = result.get(word, 0) | 1 << place
    return result


def length(places: Mapping[str, int], size: int, hypothesis: Sequence[str]) -> int:
    """Return the length of the longest common subsequence with a reference of `size` words.

    >>> length(masks(["a", "cat", "sat"]), 3, ["sat", "a", "sat"])
    2
    """
    full = row = (1 << size) - 1
    for word in hypothesis:
        hits = row & places.get(word, 0)
        row = (row + hits | row - hits) & full
    return size - row.bit_count()


def pairs(reference: Sequence[str], hypothesis: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of one longest common subsequence, (in the reference, in the hypothesis), in order.

    Of several, it is the one that ROUGE finds: from the end, equal words are taken, else the side is shortened that
    loses nothing, and the reference first if neither does.

    >>> pairs(["a", "cat", "sat"], ["sat", "a", "sat"])
    [(0, 1), (2, 2)]
    """
    rows = _rows(masks(reference), len(reference), hypothesis)
    i, j = len(reference), len(hypothesis)
    found = []
    while i and j:
        if reference[i - 1] == hypothesis[j - 1]:
            i, j = i - 1, j - 1
            found.append((i, j))
        elif _upto(rows[j - 1], i) > _upto(rows[j], i - 1):
            j -= 1
        else:
            i -= 1
    return found[::-1]


def _rows(places: Mapping[str, int], size: int, hypothesis: Sequence[str]) -> list[int]:
    full = (1 << size) - 1
    rows = [full]
    for word in hypothesis:
        row = rows[-1]
        hits = row & places.get(word, 0)
        rows.append((row + hits | row - hits) & full)
    return rows


def _upto(row: int, words: int) -> int:
    """Return the length for the first reference words: the zeros among as many bits."""
    return words - (row & (1 << words) - 1).bit_count()
