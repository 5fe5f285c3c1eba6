/* The page: what is chosen, and everything that follows from it. */
"use strict";

{
  const { make } = whyscore;
  const by = (id) => document.getElementById(id);

  function theme() {
    const button = by("theme");
    const apply = (name) => {
      document.documentElement.dataset.theme = name;
      button.textContent = `Theme: ${name}`;
    };
    const names = ["auto", "light", "dark"];
    let at = 0;
    apply(names[at]);
    button.hidden = false;
    button.addEventListener("click", () => apply(names[(at = (at + 1) % names.length)]));
  }

  function fill(select, options, chosen) {
    select.replaceChildren(...options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
    select.closest("label").hidden = options.length < 2;
  }

  function browser() {
    const data = whyscore.load();
    const systems = data.systems.map((name, k) => [String(k), name]);
    const pair = (data.pair || []).map((name) => data.systems.indexOf(name));
    const view = { metric: 0, system: -1, other: -1, range: [0, 1], pairOnly: false };
    fill(by("metric"), data.metrics.map(({ name }, k) => [String(k), name]), "0");
    fill(by("system"), [["-1", "all systems"], ...systems], "-1");
    fill(by("other"), systems.length > 1 ? [["-1", "nothing"], ...systems] : [], "-1");
    fill(by("sort"), orders(data), data.changed ? "loss" : "worst");
    if (data.changed) [by("other").value, by("system").value] = pair.map(String);
    fill(by("error"), errorKinds(data), "");
    fill(by("feature"), featureKinds(data), "");
    fill(by("review"), data.review ? [["", "any"], ["yes", "needs review"], ["no", "needs no review"]] : [], "");
    const notes = whyscore.notes(data);
    const address = whyscore.address(FIELDS.map(by));

    const live = by("word");
    let noted = null;
    let opened = -1;
    let order = [];
    const follow = () => noted && place(live, noted);
    const tell = (text, word = null) => {
      noted = word;
      live.textContent = text;
      live.classList.toggle("at", Boolean(word));
      follow();
    };
    const panel = whyscore.panel(data, by("segment"), tell);
    const list = whyscore.list(by("list"), {
      draw: (segment) => whyscore.row(data, view, segment),
      open: (segment) => {
        panel.show(segment, view);
        opened = segment;
        const { rating, comment } = notes.of(segment);
        [by("rating").value, by("comment").value] = [rating, comment];
        whyscore.highlight([by("segment")], asked().query);
        by("where").textContent = list && list.length ? `${list.position + 1} of ${list.length}` : "";
        address.position(data.ids[segment]);
      },
    });

    function update() {
      Object.assign(view, { metric: Number(by("metric").value), system: Number(by("system").value), other: Number(by("other").value || -1) });
      if (view.other >= 0 && view.system < 0) view.system = pair.find((one) => one !== view.other) ?? (view.other ? 0 : 1);
      if (view.other === view.system) view.other = -1;
      view.pairOnly = view.other >= 0;
      by("system").value = String(view.system);
      by("other").value = String(view.other);
      for (const option of by("sort").options) option.hidden = option.disabled = PAIRED.includes(option.value) && view.other < 0;
      if (PAIRED.includes(by("sort").value) && view.other < 0) by("sort").value = "worst";
      const known = data.scores[view.metric].flat().filter((value) => value !== null);
      view.range = known.length ? [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))] : [0, 1];
      const kept = filtered(data, view, asked(), notes);
      order = sorted(data, view, kept, by("sort").value);
      list.show(order);
      by("count").textContent = `${kept.length.toLocaleString("en")} of ${data.ids.length.toLocaleString("en")} segments`;
      by("shows").replaceChildren(...whyscore.rowLegend(data, view));
      by("differs-legend").hidden = view.other < 0;
      if (by("marks-legend")) by("marks-legend").hidden = !data.matched.includes(data.metrics[view.metric].name);
      by("nothing").hidden = kept.length > 0;
      by("browser").classList.toggle("bare", kept.length === 0);
    }

    const asked = () => ({
      query: by("query").value.trim().toLowerCase(), low: by("low").value, high: by("high").value,
      error: by("error").value, feature: by("feature").value, review: by("review").value, note: by("noted").value,
    });

    /** What is chosen changed: it becomes a step of the history, and the list begins at its top. */
    function change() {
      address.step();
      update();
    }

    let timer = 0;
    by("controls").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(change, 120);
    });
    by("controls").addEventListener("submit", (event) => event.preventDefault());
    by("controls").addEventListener("reset", () => { timer = setTimeout(change, 0); });
    addEventListener("scroll", follow, { passive: true, capture: true });
    by("numbers").addEventListener("change", () => by("segment").classList.toggle("numbered", by("numbers").checked));
    by("previous").addEventListener("click", () => list.step(-1));
    by("next").addEventListener("click", () => list.step(1));
    by("notes").addEventListener("input", () => notes.set(opened, { rating: by("rating").value, comment: by("comment").value.trim() }));
    const save = () => whyscore.save(`${document.title.split(" · ")[0].replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 60) || "segments"}.csv`, whyscore.csv(data, order, notes));
    by("save").addEventListener("click", save);
    const rate = (rating) => {
      by("rating").value = rating;
      by("rating").dispatchEvent(new Event("input", { bubbles: true }));
    };
    by("help").hidden = false;
    by("help").addEventListener("click", () => by("keys").showModal());
    whyscore.keys({
      "?": () => by("keys").showModal(),
      "/": () => by("query").focus(),
      j: () => list.step(1),
      k: () => list.step(-1),
      n: () => by("numbers").click(),
      t: () => by("theme").click(),
      c: () => by("comment").focus(),
      s: save,
      g: () => rate("good"),
      a: () => rate("acceptable"),
      b: () => rate("bad"),
    });
    document.querySelectorAll("button.go").forEach((button) => {
      button.addEventListener("click", () => go(button.dataset));
    });

    function go({ segment: id, query, metric, system, other, sort, error }) {
      const segment = id === undefined ? -1 : data.ids.indexOf(id);
      address.step();
      by("controls").reset();
      clearTimeout(timer);
      if (query) by("query").value = query;
      if (metric) by("metric").value = String(Math.max(0, data.metrics.findIndex(({ name }) => name === metric)));
      if (system) by("system").value = String(data.systems.indexOf(system));
      if (other) by("other").value = String(data.systems.indexOf(other));
      if (sort) by("sort").value = sort;
      if (error) by("error").value = error;
      update();
      if (segment >= 0 && !list.choose(segment)) {
        by("query").value = "";
        update();
        list.choose(segment);
      }
      if (segment < 0) list.first();
      by("segments").scrollIntoView();
      by("list").focus({ preventScroll: true });
    }

    /** Show what the address says. */
    function restore() {
      const wanted = address.read();
      update();
      if (data.ids.includes(wanted)) list.choose(data.ids.indexOf(wanted));
      return wanted;
    }

    whyscore.pictures(data, go);
    by("browser").hidden = false;
    if (!data.ids.includes(restore())) history.replaceState(null, "", location.pathname + location.search);
    addEventListener("popstate", restore);
  }

  const FIELDS = ["query", "metric", "system", "other", "sort", "error", "feature", "review", "noted", "low", "high"];
  /** Orders that need two systems. */
  const PAIRED = ["gain", "loss"];

  /** Put a note below a word, inside the window; narrow screens have it at their lower edge. */
  function place(note, word) {
    const { left, bottom, top } = word.getBoundingClientRect();
    const { width, height } = note.getBoundingClientRect();
    const below = bottom + 6 + height < innerHeight ? bottom + 6 : Math.max(0, top - height - 6);
    note.style.setProperty("--left", `${Math.max(8, Math.min(left, innerWidth - width - 16))}px`);
    note.style.setProperty("--top", `${below}px`);
  }

  function orders(data) {
    const found = [["worst", "worst first"], ["best", "best first"], ["given", "original order"]];
    if (data.systems.length > 1) found.push(["spread", "largest difference"], ["gain", "better than the other system"], ["loss", "worse than the other system"]);
    if (data.errors) found.push(["errors", "most marked errors"]);
    return found;
  }

  function errorKinds(data) {
    if (!data.errors) return [];
    const found = [["", "any"], ["some", "with errors"], ["none", "without errors"], ["unrated", "not rated"]];
    data.severities.forEach((name, k) => found.push([`s${k}`, name]));
    data.categories.forEach((name, k) => found.push([`c${k}`, name]));
    return found;
  }

  function featureKinds(data) {
    const names = data.features ? data.features.names : [];
    return names.length ? [["", "any"], ...names.flatMap((name, k) => [[`u${k}`, `too few: ${name}`], [`o${k}`, `too many: ${name}`]])] : [];
  }

  const among = (view, data) => (view.system >= 0 ? [view.system] : data.systems.map((_, k) => k));

  function filtered(data, view, { query, low, high, error, feature, review, note }, notes) {
    const kept = [];
    for (let segment = 0; segment < data.ids.length; segment++) {
      if (view.system >= 0 && data.hypotheses[view.system][segment] < 0) continue;
      if (low !== "" || high !== "") {
        const value = whyscore.value(data, view, segment);
        if (value === null || (low !== "" && value < Number(low)) || (high !== "" && value > Number(high))) continue;
      }
      if (error && !among(view, data).some((system) => hasError(data, system, segment, error))) continue;
      if (feature && !among(view, data).some((system) => hasFeature(data, system, segment, feature))) continue;
      if (review && !among(view, data).some((system) => data.review[system][segment] === (review === "yes"))) continue;
      if (note && (note === "some") !== notes.has(segment)) continue;
      if (query && !haystack(data, segment).includes(query)) continue;
      kept.push(segment);
    }
    return kept;
  }

  function hasError(data, system, segment, wanted) {
    const found = data.errors[system][segment];
    if (wanted === "unrated") return found === null;
    if (found === null) return false;
    if (wanted === "none") return found.length === 0;
    if (wanted === "some") return found.length > 0;
    const at = wanted[0] === "s" ? 3 : 4;
    return found.some((error) => error[at] === Number(wanted.slice(1)));
  }

  function hasFeature(data, system, segment, wanted) {
    const table = wanted[0] === "u" ? data.features.under : data.features.over;
    return (table[system][segment] || []).includes(Number(wanted.slice(1)));
  }

  const haystacks = [];
  function haystack(data, segment) {
    if (haystacks[segment] === undefined) {
      const numbers = [data.source[segment], ...data.references[segment], ...data.hypotheses.map((row) => row[segment])];
      haystacks[segment] = [data.ids[segment], ...numbers.filter((text) => text >= 0).map((text) => data.texts[text])].join("\n").toLowerCase();
    }
    return haystacks[segment];
  }

  function sorted(data, view, segments, order) {
    if (order === "given") return segments;
    const sign = data.metrics[view.metric].up ? 1 : -1;
    const rows = data.scores[view.metric];
    const gap = (segment, one, other) => sign * ((rows[one][segment] ?? NaN) - (rows[other][segment] ?? NaN));
    const spread = (segment) => {
      const known = rows.map((row) => row[segment]).filter((value) => value !== null);
      return known.length ? Math.max(...known) - Math.min(...known) : NaN;
    };
    const apart = (segment) => (view.other >= 0 ? Math.abs(gap(segment, view.system, view.other)) : spread(segment));
    const one = Math.max(0, view.system);
    const other = view.other >= 0 ? view.other : one ? 0 : Math.min(1, data.systems.length - 1);
    const count = (segment) => among(view, data).reduce((sum, system) => sum + (data.errors[system][segment] || []).length, 0);
    const keys = {
      worst: (segment) => sign * (whyscore.value(data, view, segment) ?? NaN),
      best: (segment) => -sign * (whyscore.value(data, view, segment) ?? NaN),
      spread: (segment) => -apart(segment),
      gain: (segment) => -gap(segment, one, other),
      loss: (segment) => gap(segment, one, other),
      errors: (segment) => -count(segment),
    };
    const key = new Map(segments.map((segment) => [segment, keys[order](segment)]));
    // What has no number comes last.
    const rank = (segment) => (Number.isNaN(key.get(segment)) ? Infinity : key.get(segment));
    return [...segments].sort((a, b) => (rank(a) === rank(b) ? a - b : rank(a) - rank(b)));
  }

  /** On paper everything is open but the data behind charts and features that tell little. */
  function printing() {
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.closest(".chart, .rare"));
      for (const one of closed) one.open = true;
    });
    addEventListener("afterprint", () => {
      for (const one of closed) one.open = false;
    });
  }

  theme();
  printing();
  if (by("data")) browser();
}
