/* Pictures of the segment scores, drawn when they come into view. Each has a sentence and its data as a table. */
"use strict";

{
  const { make, number } = whyscore;
  const WIDTH = 400, LEFT = 46, RIGHT = 10, TOP = 24, FOOT = 40;
  const BINS = 10, GROUPS = 5, LONGEST = 4, SHOWN = 12, LEAST = 2;

  const draw = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const short = (name) => (name.length > 26 ? `${name.slice(0, 25)}…` : name);
  const linear = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const count = (size, what) => `${size.toLocaleString("en")} ${what}${size === 1 ? "" : "s"}`;

  /** The smallest and the largest value; a little room where they are equal. */
  function range(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) return [0, 1];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  }

  /** Round numbers inside a range. */
  function ticks([low, high], wanted = 5) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  const tick = (value) => String(value).replace("-", "−");

  /** An empty picture with its axes; X and Y give the place of values. Without `y` there is no upright axis. */
  function frame({ x, y, below, beside = "", height = 260, label, marks = true }) {
    const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label });
    const bottom = height - FOOT;
    const X = linear(x[0], x[1], LEFT, WIDTH - RIGHT);
    const Y = y ? linear(y[0], y[1], bottom, TOP) : null;
    svg.append(draw("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: bottom, y2: bottom }));
    for (const value of marks ? ticks(x) : []) {
      svg.append(draw("line", { class: "axis", x1: X(value), x2: X(value), y1: bottom, y2: bottom + 4 }));
      svg.append(draw("text", { x: X(value), y: bottom + 16, "text-anchor": "middle" }, tick(value)));
    }
    for (const value of y ? ticks(y) : []) {
      svg.append(draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: Y(value), y2: Y(value) }));
      svg.append(draw("text", { x: LEFT - 6, y: Y(value) + 4, "text-anchor": "end" }, tick(value)));
    }
    svg.append(draw("text", { x: WIDTH - RIGHT, y: height - 6, "text-anchor": "end", class: "title" }, below));
    svg.append(draw("text", { x: 2, y: 12, class: "title" }, beside));
    return { svg, X, Y, bottom };
  }

  /** A table of texts and numbers; the first column names the row. */
  function table(columns, rows) {
    const cell = (value, k) => make(k ? "td" : "th", k ? { class: typeof value === "string" ? null : "number" } : { scope: "row" },
      typeof value === "object" ? value : make("bdi", {}, String(value).replace(/^-/, "−")));
    return make("table", { class: "close" },
      make("thead", {}, make("tr", {}, ...columns.map((name, k) => make("th", { scope: "col", class: k ? "number" : null }, make("bdi", {}, name))))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))));
  }

  /** A picture with its title, what it says in words, and a table that is made when it is opened. */
  function figure(id, title, words, pictures, columns, rows) {
    const data = make("details", {}, make("summary", {}, "Data as a table"));
    data.addEventListener("toggle", () => {
      if (data.open && data.children.length === 1) {
        data.append(make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `data: ${title}` }, table(columns, rows())));
      }
    });
    return make("figure", { class: "chart", id }, make("figcaption", {}, make("strong", {}, title), " ", words), ...pictures, data);
  }

  /** What can be seen of two systems: pairs of values of the segments that both have. */
  const paired = (one, other) => one.map((value, segment) => [segment, value, other[segment]]).filter(([, a, b]) => a !== null && b !== null);

  function wins(data, { metric, system, other }) {
    const { up, digits, name } = data.metrics[metric];
    const pairs = paired(data.scores[metric][system], data.scores[metric][other]);
    const gaps = pairs.map(([, a, b]) => Number((a - b).toPrecision(6)));
    const better = gaps.filter((gap) => (up ? gap > 0 : gap < 0)).length;
    const ties = gaps.filter((gap) => gap === 0).length;
    const parts = [better, ties, gaps.length - better - ties];
    const [one, two] = [data.systems[system], data.systems[other]];
    const words = `${one} scores better than ${two} on ${count(parts[0], "segment")}, worse on ${parts[2].toLocaleString("en")}, the same on ${parts[1].toLocaleString("en")}.`;
    const strip = draw("svg", { viewBox: `0 0 ${WIDTH} 34`, role: "img", "aria-label": words });
    let start = 0;
    ["first", "tie", "second"].forEach((kind, k) => {
      const width = (parts[k] / (gaps.length || 1)) * WIDTH;
      strip.append(draw("rect", { class: kind, x: start, y: 2, width: Math.max(0, width - 1), height: 14 }));
      if (width > 40) strip.append(draw("text", { x: start + width / 2, y: 30, "text-anchor": "middle" }, `${["better", "same", "worse"][k]} ${parts[k]}`));
      start += width;
    });
    const most = Math.max(...range(gaps).map(Math.abs)) || 1;
    const step = ticks([0, most], BINS)[1] || most;
    const bins = Math.max(1, Math.ceil(most / step - 1e-9));
    const sizes = Array.from({ length: 2 * bins }, () => 0);
    for (const gap of gaps) if (gap) sizes[gap > 0 ? bins + Math.min(bins, Math.ceil(gap / step - 1e-9)) - 1 : bins - Math.min(bins, Math.ceil(-gap / step - 1e-9))]++;
    const label = `histogram of ${name} differences, ${one} minus ${two}`;
    const { svg, X, Y, bottom } = frame({ x: [-bins * step, bins * step], y: [0, Math.max(...sizes, 1)], below: `${name}: ${short(one)} − ${short(two)}`, beside: "segments", height: 220, label });
    sizes.forEach((size, k) => {
      const low = (k - bins) * step;
      const kind = (k >= bins) === up ? "first" : "second";
      svg.append(draw("rect", { class: kind, x: X(low) + 0.5, width: Math.max(0.5, X(low + step) - X(low) - 1), y: Y(size), height: bottom - Y(size) }));
    });
    svg.append(draw("line", { class: "zero", x1: X(0), x2: X(0), y1: TOP, y2: bottom }));
    const rows = () => [["the same", ties], ...sizes.map((size, k) => [`${((k - bins) * step).toFixed(digits)} to ${((k - bins + 1) * step).toFixed(digits)}`, size])];
    return figure("picture-wins", "Segment differences.", words, [strip, svg], [`${one} − ${two}`, "segments"], rows);
  }

  /** A picture of points that open their segments, by click or by arrow keys and Enter. */
  function points(svg, X, Y, dots, told, open) {
    const order = [...dots].sort((a, b) => a.x - b.x || a.y - b.y);
    const group = draw("g", { class: "points" });
    const marks = order.map(({ x, y, kind }, k) => {
      const mark = kind === "second"
        ? draw("rect", { class: kind, x: X(x) - 2.5, y: Y(y) - 2.5, width: 5, height: 5 })
        : draw("circle", { class: kind, cx: X(x), cy: Y(y), r: 3 });
      mark.dataset.k = k;
      return mark;
    });
    group.append(...marks);
    svg.append(group);
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", `${svg.getAttribute("aria-label")}; arrow keys move from segment to segment, Enter opens`);
    const status = make("p", { class: "picked", role: "status" }, "Click a point to read its segment.");
    let at = -1;
    const pick = (k) => {
      if (marks[at]) marks[at].classList.remove("current");
      at = Math.max(0, Math.min(order.length - 1, k));
      marks[at].classList.add("current");
      status.replaceChildren(...told(order[at]));
    };
    const moves = { ArrowRight: () => at + 1, ArrowDown: () => at + 1, ArrowLeft: () => at - 1, ArrowUp: () => at - 1, Home: () => 0, End: () => order.length - 1 };
    svg.addEventListener("pointerover", (event) => event.target.dataset.k !== undefined && pick(Number(event.target.dataset.k)));
    svg.addEventListener("click", (event) => event.target.dataset.k !== undefined && open(order[Number(event.target.dataset.k)]));
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && at >= 0) open(order[at]);
      else if (event.key in moves && order.length) pick(moves[event.key]());
      else return;
      event.preventDefault();
    });
    return status;
  }

  function scatter(data, view, go) {
    const { metric, system, other } = view;
    const { name, digits } = data.metrics[metric];
    const [one, two] = [data.systems[system], data.systems[other]];
    const pairs = paired(data.scores[metric][system], data.scores[metric][other]);
    const both = range(pairs.flatMap(([, a, b]) => [a, b]));
    const label = `${name} of ${one} against ${two}, a point for each of ${count(pairs.length, "segment")}`;
    const { svg, X, Y } = frame({ x: both, y: both, below: `${name}, ${short(two)}`, beside: `${name}, ${short(one)}`, height: 340, label });
    svg.append(draw("line", { class: "zero", x1: X(both[0]), y1: Y(both[0]), x2: X(both[1]), y2: Y(both[1]) }));
    const up = data.metrics[metric].up;
    const dots = pairs.map(([segment, a, b]) => ({ segment, x: b, y: a, kind: a === b ? "tie" : a > b === up ? "first" : "second" }));
    const told = ({ segment, x, y }) => ["Segment ", make("bdi", {}, data.ids[segment]), ": ", make("bdi", {}, one), ` ${number(y, digits)}, `, make("bdi", {}, two), ` ${number(x, digits)}`];
    const status = points(svg, X, Y, dots, told, ({ segment }) => go({ segment: data.ids[segment], metric: name, system: one, other: two }));
    const words = `Each point is a segment; on the line both systems score the same. Blue circles: ${one} is better; orange squares: ${two} is better.`;
    const rows = () => pairs.map(([segment, a, b]) => [data.ids[segment], number(a, digits), number(b, digits), number(a - b, digits)]);
    return figure("picture-scatter", `${one} against ${two}.`, words, [svg, status], ["segment", one, two, "difference"], rows);
  }

  function quantile(sorted, share) {
    const at = share * (sorted.length - 1);
    const low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  }

  function distributions(data, { metric, system, other }) {
    const { name, digits } = data.metrics[metric];
    const rows = data.scores[metric].map((values) => values.filter((value) => value !== null).sort((a, b) => a - b));
    const all = range(rows.flatMap((values) => (values.length ? [values[0], values.at(-1)] : [])));
    const height = TOP + 44 * rows.length + FOOT;
    const { svg, X } = frame({ x: all, below: `${name} of segments`, height, label: `distribution of ${name} for ${count(rows.length, "system")}` });
    const size = 2.4 * BINS;
    rows.forEach((values, k) => {
      const base = TOP + 44 * (k + 1) - 8;
      const sizes = Array.from({ length: size }, () => 0);
      for (const value of values) sizes[Math.min(size - 1, Math.floor(linear(all[0], all[1], 0, size)(value)))]++;
      const Y = linear(0, Math.max(...sizes, 1), 0, 26);
      const kind = k === system ? "first" : k === other ? "second" : "tie";
      const step = (WIDTH - RIGHT - LEFT) / size;
      sizes.forEach((many, bin) => many && svg.append(draw("rect", { class: kind, x: LEFT + bin * step, width: step - 0.5, y: base - Y(many), height: Y(many) })));
      svg.append(draw("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: base, y2: base }));
      if (values.length) svg.append(draw("line", { class: "median", x1: X(quantile(values, 0.5)), x2: X(quantile(values, 0.5)), y1: base - 28, y2: base + 3 }));
      svg.append(draw("text", { x: 2, y: base - 30 + 8 }, short(data.systems[k])));
    });
    const told = () => rows.map((values, k) => [data.systems[k], values.length, ...(values.length ? [mean(values), ...[0.1, 0.25, 0.5, 0.75, 0.9].map((share) => quantile(values, share))] : Array(6).fill(null)).map((value) => number(value, digits))]);
    return figure("picture-spread", "Distribution of segment scores.", "Vertical lines are medians.", [svg], ["system", "segments", "mean", "10 %", "25 %", "median", "75 %", "90 %"], told);
  }

  /** Segments in groups of equal size by a key; [label, segments] each. Equal keys stay together. */
  function grouped(keys, say) {
    const known = keys.map((key, segment) => [key, segment]).filter(([key]) => key !== null).sort((a, b) => a[0] - b[0]);
    const found = [];
    for (let k = 0, start = 0; k < GROUPS && start < known.length; k++) {
      let end = Math.max(start + 1, Math.round(((k + 1) * known.length) / GROUPS));
      while (end < known.length && known[end][0] === known[end - 1][0]) end++;
      found.push([say(known[start][0], known[end - 1][0]), known.slice(start, end).map(([, segment]) => segment)]);
      start = end;
    }
    return found;
  }

  /** The mean with the half width of its 95 % interval (normal approximation). */
  function average(values) {
    const middle = mean(values);
    const variance = values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1);
    return [middle, values.length > 1 ? 1.96 * Math.sqrt(variance / values.length) : null];
  }

  function byGroup(data, { metric, system, other }, id, title, words, below, groups) {
    const { name, digits } = data.metrics[metric];
    const shown = [system, other].filter((k) => k >= 0);
    const rows = groups.map(([label, segments]) => [label, shown.map((k) => segments.map((segment) => data.scores[metric][k][segment]).filter((value) => value !== null))]);
    const stats = rows.map(([label, lists]) => [label, lists.map((values) => (values.length ? [...average(values), values.length] : null))]);
    const ends = stats.flatMap(([, found]) => found.flatMap((one) => (one ? [one[0] - (one[1] ?? 0), one[0] + (one[1] ?? 0)] : [])));
    const { svg, X, Y, bottom } = frame({ x: [0, groups.length], y: range(ends), below, beside: `mean ${name}`, label: `${title} ${name}`, marks: false });
    stats.forEach(([label, found], group) => {
      svg.append(draw("text", { x: X(group + 0.5), y: bottom + 16, "text-anchor": "middle" }, label));
      found.forEach((one, k) => {
        if (!one) return;
        const x = X(group + 0.5) + (shown.length > 1 ? (k ? 7 : -7) : 0);
        const kind = k ? "second" : "first";
        if (one[1] !== null) svg.append(draw("line", { class: `whisker ${kind}`, x1: x, x2: x, y1: Y(one[0] - one[1]), y2: Y(one[0] + one[1]) }));
        svg.append(k ? draw("rect", { class: kind, x: x - 4, y: Y(one[0]) - 4, width: 8, height: 8 }) : draw("circle", { class: kind, cx: x, cy: Y(one[0]), r: 4.5 }));
      });
    });
    const names = shown.map((k) => data.systems[k]);
    const key = names.length > 1 ? ` Blue circles: ${names[0]}; orange squares: ${names[1]}.` : "";
    const told = () => stats.map(([label, found]) => [label, ...found.flatMap((one) => (one ? [number(one[0], digits), one[1] === null ? "–" : `± ${number(one[1], digits)}`, one[2]] : ["–", "–", 0]))]);
    return figure(id, title, `${words} Lines are 95 % confidence intervals of the mean.${key}`, [svg], [below, ...names.flatMap((one) => [one, "95 %", "segments"])], told);
  }

  function byLength(data, view) {
    const text = (segment) => data.texts[data.references[segment][0] ?? (data.source[segment] >= 0 ? data.source[segment] : data.hypotheses[view.system][segment])];
    const what = data.references.some((list) => list.length) ? "reference" : data.source.some((place) => place >= 0) ? "source" : "hypothesis";
    const lengths = data.ids.map((_, segment) => (text(segment) === undefined ? null : whyscore.split(text(segment)).length));
    const groups = grouped(lengths, (low, high) => (low === high ? `${low}` : `${low}–${high}`));
    return byGroup(data, view, "picture-length", "Score by sentence length.", `Segments are grouped into bins of about equal size by the number of words in the ${what}.`, `words in the ${what}`, groups);
  }

  function byRarity(data, view) {
    const groups = grouped(data.rarity, (low, high) => `${low.toFixed(1)}–${high.toFixed(1)}`);
    return byGroup(data, view, "picture-rarity", "Score by word frequency.", "Segments are grouped into bins of about equal size by the mean surprisal of the words in the reference: rare words are on the right.", "mean surprisal (nats)", groups);
  }

  function human(data, view, go, { name: rating, values }) {
    const { name, digits } = data.metrics[view.metric];
    const shown = [view.system, view.other].filter((k) => k >= 0);
    const dots = shown.flatMap((k, i) => paired(values[k], data.scores[view.metric][k]).map(([segment, x, y]) => ({ segment, x, y, system: k, kind: i ? "second" : "first" })));
    if (!dots.length) return null;
    const label = `${name} against human scores (${rating}), ${count(dots.length, "rated text")}`;
    const { svg, X, Y } = frame({ x: range(dots.map(({ x }) => x)), y: range(dots.map(({ y }) => y)), below: `human: ${short(rating)}`, beside: name, height: 300, label });
    const told = ({ segment, system, x, y }) => ["Segment ", make("bdi", {}, data.ids[segment]), ", ", make("bdi", {}, data.systems[system]), `: human ${number(x, 1)}, ${name} ${number(y, digits)}`];
    const status = points(svg, X, Y, dots, told, ({ segment, system }) => go({ segment: data.ids[segment], metric: name, system: data.systems[system] }));
    const key = shown.length > 1 ? ` Blue circles: ${data.systems[shown[0]]}; orange squares: ${data.systems[shown[1]]}.` : "";
    const rows = () => dots.map(({ segment, system, x, y }) => [data.ids[segment], data.systems[system], number(x, 1), number(y, digits)]);
    return figure(`picture-human-${data.human.findIndex((one) => one.name === rating)}`, `${name} against human scores (${rating}).`, `Each point is a rated text.${key}`, [svg, status], ["segment", "system", `human: ${rating}`, name], rows);
  }

  const words = (text) => whyscore.split(text).map(([start, end]) => whyscore.form(text.slice(start, end))).filter((word) => /[\p{L}\p{N}]/u.test(word));

  /** How often each n-gram of a text occurs, as far as another table has it. */
  function ngrams(list, within = null) {
    const found = new Map();
    for (let start = 0; start < list.length; start++) {
      for (let size = 1, gram = ""; size <= LONGEST && start + size <= list.length; size++) {
        gram = size > 1 ? `${gram} ${list[start + size - 1]}` : list[start];
        if (!within || within.has(gram)) found.set(gram, (found.get(gram) || 0) + 1);
      }
    }
    return found;
  }

  /**
   * N-grams of the references that one system has and the other lacks, after compare-mt (Neubig et al. 2019): matches
   * are clipped at the reference's count, and ranked by (m + 1) / (m + m' + 2), m' being the matches of the other.
   */
  whyscore.distinctive = (data, system, other) => {
    const totals = new Map();
    data.ids.forEach((_, segment) => {
      const texts = [system, other].map((k) => data.hypotheses[k][segment]);
      if (texts.some((text) => text < 0) || texts[0] === texts[1]) return;
      const wanted = new Map();
      for (const place of data.references[segment]) {
        for (const [gram, many] of ngrams(words(data.texts[place]))) wanted.set(gram, Math.max(many, wanted.get(gram) || 0));
      }
      const [one, two] = texts.map((text) => ngrams(words(data.texts[text]), wanted));
      for (const gram of new Set([...one.keys(), ...two.keys()])) {
        const [a, b] = [one, two].map((found) => Math.min(found.get(gram) || 0, wanted.get(gram)));
        if (a === b) continue;
        const total = totals.get(gram) || { gram, only: [0, 0], examples: [-1, -1] };
        const side = a > b ? 0 : 1;
        total.only[side] += Math.abs(a - b);
        if (total.examples[side] < 0) total.examples[side] = segment;
        totals.set(gram, total);
      }
    });
    const score = (total, side) => (total.only[side] + 1) / (total.only[0] + total.only[1] + 2);
    const top = (side) => [...totals.values()].filter(({ only }) => only[side] >= LEAST && only[side] > only[1 - side])
      .sort((a, b) => score(b, side) - score(a, side) || b.only[side] - a.only[side] || (a.gram < b.gram ? -1 : 1)).slice(0, SHOWN);
    return [top(0), top(1)];
  };

  function distinctive(data, view, go) {
    const [one, two] = [data.systems[view.system], data.systems[view.other]];
    const box = make("details", { class: "chart-words", id: "picture-ngrams" }, make("summary", {}, "Phrases that only one of the two systems gets right"));
    const link = (segment, gram) => {
      const button = make("button", { type: "button", class: "link id", title: data.ids[segment] }, make("bdi", {}, data.ids[segment]));
      button.addEventListener("click", () => go({ segment: data.ids[segment], system: one, other: two, query: gram }));
      return button;
    };
    box.addEventListener("toggle", () => {
      if (!box.open || box.children.length > 1) return;
      const lists = whyscore.distinctive(data, view.system, view.other);
      const tables = lists.map((found, side) => {
        const [own, its] = side ? [two, one] : [one, two];
        const shown = table(["phrase", `only ${own}`, `only ${its}`, "example"], found.map(({ gram, only, examples }) => [gram, only[side], only[1 - side], link(examples[side], gram)]));
        const title = make("caption", {}, "Right in ", make("bdi", {}, own), ", not in ", make("bdi", {}, its));
        shown.prepend(title);
        return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `phrases that only ${own} gets right` }, found.length ? shown : make("p", { class: "note" }, `No phrase occurs ${LEAST} times in ${own} alone.`));
      });
      box.append(make("p", { class: "note" }, `Phrases of one to ${LONGEST} words of a reference, ignoring case and punctuation; the numbers show how often one system has the phrase and the other does not.`),
        make("div", { class: "columns" }, ...tables));
    });
    return box;
  }

  const fill = (select, options, chosen) => {
    select.replaceChildren(...options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
    select.closest("label").hidden = options.length < 2;
  };

  /** Draw everything into the section, and again when another metric or system is chosen. `go` opens a segment. */
  whyscore.pictures = (data, go) => {
    const by = (id) => document.getElementById(id);
    const systems = data.systems.map((name, k) => [k, name]);
    const pair = (data.pair || []).map((name) => data.systems.indexOf(name));
    if (data.changed) pair.reverse();
    fill(by("picture-metric"), data.metrics.map(({ name }, k) => [k, name]), 0);
    fill(by("picture-system"), systems, pair[0] ?? 0);
    fill(by("picture-other"), systems, pair[1] ?? 0);
    const chosen = (id) => Number(by(id).value);

    function update() {
      const view = { metric: chosen("picture-metric"), system: chosen("picture-system"), other: chosen("picture-other") };
      if (view.other === view.system) view.other = -1;
      const two = view.other >= 0;
      const ratings = data.human.map((one) => human(data, view, go, one));
      by("charts").replaceChildren(...[
        two ? wins(data, view) : null, two ? scatter(data, view, go) : null, distributions(data, view), byLength(data, view),
        data.rarity ? byRarity(data, view) : null, ...ratings,
      ].filter(Boolean));
      by("phrases").replaceChildren(...(two && data.references.some((list) => list.length) ? [distinctive(data, view, go)] : []));
    }

    by("picture-controls").addEventListener("input", update);
    by("picture-controls").addEventListener("submit", (event) => event.preventDefault());
    let drawn = false;
    const once = () => {
      if (!drawn) update();
      drawn = true;
    };
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && once(), { rootMargin: "600px" }).observe(by("charts"));
    addEventListener("beforeprint", once);
    by("drawn").hidden = false;
  };
}
