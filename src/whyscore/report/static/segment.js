/* One segment: source, references and hypotheses below each other, words on colours. */
"use strict";

{
  const { make, number } = whyscore;
  const LATER = 4;

  /** A panel that shows segments; `tell` gets a sentence about the word under the pointer or the focus. */
  whyscore.panel = (data, box, tell) => {
    let shown = [];

    function show(segment, view) {
      const focus = view.system >= 0 ? view.system : first(segment);
      const order = systems(segment, view, focus);
      const whys = new Map(order.map((system) => [system, whyscore.why(data, view.metric, system, segment)]));
      const largest = strongest(whys, view.metric);
      const texts = whyscore.texts(data, focus, segment);
      shown = [];
      const parts = [heading(segment)];
      const given = [...texts].filter(([place, text]) => place > 0 && text >= 0);
      const card = ([place, text]) => block(segment, focus, place, text, whys.get(focus), largest, view, null);
      parts.push(...given.filter(([place]) => place < LATER).map(card));
      const differs = compared(segment, view, whys, order);
      for (const system of order) {
        const text = data.hypotheses[system][segment];
        parts.push(block(segment, system, 0, text, whys.get(system), largest, view, differs.get(system)));
      }
      // Many references would push what one came to read out of view.
      const later = given.filter(([place]) => place >= LATER);
      if (later.length) parts.push(make("p", { class: "later" }, "More references"), ...later.map(card));
      box.replaceChildren(...parts);
      tell("");
    }

    const first = (segment) => Math.max(0, data.systems.findIndex((_, system) => data.hypotheses[system][segment] >= 0));

    function systems(segment, view, focus) {
      const there = data.systems.map((_, system) => system).filter((system) => data.hypotheses[system][segment] >= 0);
      const ahead = [focus, view.other].filter((system) => system >= 0 && there.includes(system));
      return view.pairOnly && ahead.length > 1 ? ahead : [...new Set([...ahead, ...there])];
    }

    /** The largest distance from the neutral value, over everything that is shown: one scale for all texts. */
    function strongest(whys, metric) {
      let largest = 0;
      for (const why of whys.values()) {
        for (const [place, { values }] of why) {
          const centre = whyscore.centre(data, metric, place);
          for (const value of values) if (!Number.isNaN(value)) largest = Math.max(largest, Math.abs(value - centre));
        }
      }
      return largest;
    }

    function compared(segment, view, whys, order) {
      const found = new Map();
      if (view.other < 0 || order.length < 2) return found;
      const [one, other] = order;
      const forms = [one, other].map((system) => {
        const text = data.texts[data.hypotheses[system][segment]];
        return borders(whys.get(system), 0, text).map(([start, end]) => whyscore.form(text.slice(start, end)));
      });
      const sets = whyscore.differences(...forms);
      found.set(one, sets[0]);
      found.set(other, sets[1]);
      return found;
    }

    const borders = (why, place, text) => (why.has(place) ? why.get(place).borders : whyscore.split(text));

    function heading(segment) {
      const about = data.documents && data.documents[segment];
      const line = whyscore.line(data, segment);
      return make("h3", {}, "Segment ", make("bdi", {}, data.ids[segment]), line ? make("small", { class: "line-number" }, ` (${line})`) : null,
        about ? make("small", {}, " in ", make("bdi", {}, about)) : null);
    }

    function block(segment, system, place, number_, why, largest, view, differs) {
      const text = data.texts[number_];
      const told = why.get(place);
      const centre = whyscore.centre(data, view.metric, place);
      const errors = marked(system, segment, place);
      const label = place === 1 ? "Source" : place === 0 ? data.systems[system] : named(segment, system, place);
      const name = make("bdi", { class: "who" }, label);
      const head = make("div", { class: "head" }, name, ...(place === 0 ? facts(segment, system, view) : []));
      if (place > 0 && told && data.systems.length > 1) {
        head.append(make("span", { class: "fact" }, "coloured for ", make("bdi", {}, data.systems[system])));
      }
      const paragraph = whyscore.paragraph(text, `${label}: ${place === 0 ? "hypothesis" : "text"}`, {
        borders: told ? told.borders : whyscore.split(text),
        strengths: told && largest ? told.values.map((value) => (value - centre) / largest) : null,
        labels: told ? told.values.map((value) => (Number.isNaN(value) ? "" : whyscore.signed(value))) : null,
        matches: told ? told.matches : null,
        errors,
        differs,
      });
      shown.push({ paragraph, text, place, system, told, borders: told ? told.borders : whyscore.split(text), errors, view });
      const kind = place === 0 ? "hypothesis" : place === 1 ? "source" : "reference";
      const card = make("section", { class: `card ${kind}`, "aria-label": label }, head, paragraph);
      if (errors.length) card.append(make("ul", { class: "errors", "aria-label": "errors marked by human raters" }, ...errors.map((error) => listed(error, text))));
      return card;
    }

    function named(segment, system, place) {
      const texts = whyscore.texts(data, system, segment);
      return texts.size > 3 ? `Reference ${place - 1}` : "Reference";
    }

    function listed([start, end, kind, about], text) {
      const quoted = text.slice(start, Math.min(end, start + 80)) + (end > start + 80 ? "…" : "");
      return make("li", {}, make("span", { class: `badge ${kind}` }, about), quoted ? make("q", { dir: "auto" }, quoted) : null);
    }

    /** The numbers beside a hypothesis: its scores, its human scores. */
    function facts(segment, system, view) {
      const found = data.metrics.map((metric, k) => {
        const value = number(data.scores[k][system][segment], metric.digits);
        return make("span", { class: k === view.metric ? "fact main" : "fact" }, make("bdi", {}, metric.name), ` ${value}`);
      });
      for (const { name, values } of data.human) {
        const value = values[system][segment];
        if (value !== null) found.push(make("span", { class: "fact people" }, "human: ", make("bdi", {}, name), ` ${number(value, 1)}`));
      }
      return found;
    }

    function marked(system, segment, place) {
      const found = (data.errors && data.errors[system][segment]) || [];
      return found.filter((error) => error[0] === place).map(([, start, end, severity, category]) => {
        const kind = severity < 0 ? "minor" : data.severities[severity];
        const about = [severity < 0 ? null : kind, category < 0 ? null : data.categories[category]].filter(Boolean).join(", ");
        return [start, end, kind, about || "error"];
      });
    }

    function over(event) {
      const word = event.target.closest && event.target.closest(".word");
      clear();
      if (!word || !box.contains(word)) return tell("");
      const here = shown.find((one) => one.paragraph.contains(word));
      const at = Number(word.dataset.number);
      const [start, end] = here.borders[at];
      const form = whyscore.form(here.text.slice(start, end));
      word.classList.add("current");
      const note = here.told && here.told.notes ? here.told.notes[at] : "";
      const partners = pairs(here, at, form);
      for (const partner of partners) partner.classList.add("partner");
      tell(sentence(here, at, note, partners.length, start, end), word);
    }

    function sentence(here, at, note, partners, start, end) {
      const value = here.told ? here.told.values[at] : NaN;
      const centre = whyscore.centre(data, here.view.metric, here.place);
      const parts = [`${here.text.slice(start, Math.min(end, start + 60))}`];
      if (here.told) {
        const kind = Number.isNaN(value) ? "" : value < centre ? (centre ? "below the usual" : "costs") : value > centre ? (centre ? "above the usual" : "earns") : "neutral";
        parts.push(`${whyscore.signed(value)} ${kind}`.trim());
      } else parts.push("not explained");
      if (note) parts.push(note);
      const about = here.errors.filter((error) => error[0] < end && error[1] > start).map((error) => `human: ${error[3]}`);
      parts.push(...new Set(about));
      if (!note) parts.push(partners ? `${partners} counterpart${partners > 1 ? "s" : ""} of the same form` : "no counterpart of the same form");
      return parts.join(" · ");
    }

    /** The counterparts of a word: its matches, or words of the same form in the other texts. */
    function pairs(here, at, form) {
      const matches = here.told && here.told.matches;
      if (matches) {
        const found = [];
        for (let k = 1; k < matches[at].length; k += 3) found.push(...touched(here, ...matches[at].slice(k, k + 3)));
        return [...new Set(found)];
      }
      const across = shown.filter((one) => (here.place === 0 ? one.place > 0 : one.place === 0));
      return across.flatMap((one) => words(one).filter((_, k) => whyscore.form(one.text.slice(...one.borders[k])) === form));
    }

    const textAt = (here, place) => shown.find((one) => one.place === place && (place > 0 || one.system === here.system));

    /** The words of another text that a stretch touches. */
    function touched(here, place, start, end) {
      const there = textAt(here, place);
      return there ? words(there).filter((_, k) => there.borders[k][0] < end && there.borders[k][1] > start) : [];
    }

    const words = (one) => [...one.paragraph.querySelectorAll(".word")];
    const clear = () => box.querySelectorAll(".current, .partner").forEach((word) => word.classList.remove("current", "partner"));

    /** Arrow keys go from word to word inside a text. */
    function keys(event) {
      const word = event.target.closest(".word");
      if (!word || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
      event.preventDefault();
      const here = shown.find((one) => one.paragraph.contains(word));
      const every = words(here);
      const turned = getComputedStyle(here.paragraph).direction === "rtl" ? -1 : 1;
      const at = every.indexOf(word);
      const goal = { ArrowLeft: at - turned, ArrowRight: at + turned, Home: 0, End: every.length - 1 }[event.key];
      const next = every[Math.max(0, Math.min(every.length - 1, goal))];
      word.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }

    box.addEventListener("pointerover", over);
    box.addEventListener("focusin", over);
    box.addEventListener("pointerleave", () => { clear(); tell(""); });
    box.addEventListener("keydown", keys);
    return { show };
  };
}
