/* Texts as words on colours, with marked errors over them and differences below them. */
"use strict";

{
  const { make } = whyscore;
  const EDGES = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu;

  /** A word as it is compared: without case and the punctuation around it. */
  whyscore.form = (word) => word.replace(EDGES, "").toLowerCase() || word;

  /** White-space words, or single characters of scripts without blanks: for texts that nobody explained. */
  whyscore.split = (text) => {
    const found = [];
    for (const match of text.matchAll(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu)) {
      found.push([match.index, match.index + match[0].length]);
    }
    return found;
  };

  /**
   * A text as an element whose words can be reached by arrow keys.
   * options: borders, labels, strengths, matches, errors [[start, end, class, about]], differs (set of word numbers)
   */
  whyscore.paragraph = (text, label, options) => {
    const borders = options.borders || [];
    const block = make("p", { class: "text", dir: "auto", role: "group", "aria-label": label });
    let position = 0;
    borders.forEach(([start, end], number) => {
      if (start > position) append(block, text, position, start, options.errors);
      const word = make("span", { class: "word", tabindex: number ? "-1" : "0" });
      word.dataset.number = number;
      append(word, text, start, end, options.errors);
      colour(word, options.strengths ? options.strengths[number] : NaN);
      if (options.labels && options.labels[number]) word.dataset.value = options.labels[number];
      const mark = options.matches && options.matches[number][0];
      if (mark) word.dataset.mark = mark;
      if (options.differs && options.differs.has(number)) word.classList.add("differs");
      block.append(word);
      position = end;
    });
    if (position < text.length) append(block, text, position, text.length, options.errors);
    for (const [start, end, kind, about] of options.errors || []) {
      if (start >= end) block.append(make("span", { class: `error ${kind} omitted`, title: about }, "‸"));
    }
    if (!text) block.append(make("span", { class: "empty" }, "(empty)"));
    return block;
  };

  /** Add a stretch of text, cut where errors begin and end. */
  function append(parent, text, start, end, errors) {
    const inside = (errors || []).filter((error) => error[0] < end && error[1] > start);
    if (!inside.length) {
      parent.append(text.slice(start, end));
      return;
    }
    const cuts = new Set([start, end]);
    for (const [from, to] of inside) {
      if (from > start) cuts.add(from);
      if (to < end) cuts.add(to);
    }
    const order = [...cuts].sort((a, b) => a - b);
    for (let k = 0; k + 1 < order.length; k++) {
      const piece = text.slice(order[k], order[k + 1]);
      const over = inside.filter((error) => error[0] <= order[k] && error[1] >= order[k + 1]);
      if (!over.length) parent.append(piece);
      else parent.append(make("span", { class: `error ${over.at(-1)[2]}`, title: over.map((error) => error[3]).join("; ") }, piece));
    }
  }

  function colour(word, strength) {
    if (Number.isNaN(strength) || Math.abs(strength) < 0.02) return;
    word.classList.add(strength < 0 ? "costs" : "earns");
    word.style.setProperty("--strength", Math.abs(strength).toFixed(3));
  }

  /** Which words of two texts have no equal partner in the other, by the longest common subsequence. */
  whyscore.differences = (one, other) => {
    const rows = one.length, columns = other.length;
    if (rows * columns > 4_000_000) return [new Set(), new Set()];
    const width = columns + 1;
    const best = new Uint32Array((rows + 1) * width);
    for (let i = rows - 1; i >= 0; i--) {
      for (let j = columns - 1; j >= 0; j--) {
        best[i * width + j] = one[i] === other[j] ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
      }
    }
    const first = new Set(), second = new Set();
    let i = 0, j = 0;
    while (i < rows || j < columns) {
      if (i < rows && j < columns && one[i] === other[j]) { i++; j++; }
      else if (j >= columns || (i < rows && best[(i + 1) * width + j] >= best[i * width + j + 1])) first.add(i++);
      else second.add(j++);
    }
    return [first, second];
  };

  /** Mark where a query occurs in the texts of some boxes; what is in the page stays as it is. */
  whyscore.highlight = (boxes, query) => {
    if (!("highlights" in CSS)) return;
    CSS.highlights.delete("hits");
    const ranges = query ? boxes.flatMap((box) => [...box.querySelectorAll(".text")].flatMap((text) => hits(text, query))) : [];
    if (ranges.length) CSS.highlights.set("hits", new Highlight(...ranges));
  };

  function hits(element, query) {
    const nodes = [];
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let whole = "";
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      nodes.push([whole.length, node]);
      whole += node.data;
    }
    const lower = whole.toLowerCase();
    if (lower.length !== whole.length) return [];
    const at = (position) => nodes.findLast(([start]) => start <= position);
    const found = [];
    for (let k = lower.indexOf(query); k >= 0; k = lower.indexOf(query, k + query.length)) {
      const range = document.createRange();
      const [first, last] = [at(k), at(k + query.length - 1)];
      range.setStart(first[1], k - first[0]);
      range.setEnd(last[1], k + query.length - last[0]);
      found.push(range);
    }
    return found;
  }
}
