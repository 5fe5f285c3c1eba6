/* The data of the page: one JSON block, numbers packed into short texts (see explorer.py). */
"use strict";
const whyscore = {};

whyscore.load = () => JSON.parse(document.getElementById("data").textContent);

{
  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const CODE = new Map([...ALPHABET].map((character, number) => [character, number]));
  const STEPS = 2047;

  /** Word borders: gap and length in turn, five bits a character. */
  whyscore.borders = (packed) => {
    const found = [];
    let position = 0, value = 0, shift = 0, gap = null;
    for (const character of packed) {
      const code = CODE.get(character);
      value += (code & 31) * 2 ** shift;
      shift += 5;
      if (code & 32) continue;
      if (gap === null) gap = value;
      else {
        found.push([position + gap, position + gap + value]);
        position += gap + value;
        gap = null;
      }
      value = 0;
      shift = 0;
    }
    return found;
  };

  /** Importances: two characters a word, NaN where there is no number. */
  whyscore.values = (scale, packed) => {
    const found = [];
    for (let i = 0; i < packed.length; i += 2) {
      const pair = packed.slice(i, i + 2);
      found.push(pair === ".." ? NaN : ((CODE.get(pair[0]) * 64 + CODE.get(pair[1]) - STEPS - 1) / STEPS) * scale);
    }
    return found;
  };
}

/** What a metric says of the texts of one system's segment: place -> {values, borders, notes, matches}. */
whyscore.why = (data, metric, system, segment) => {
  const found = new Map();
  const texts = whyscore.texts(data, system, segment);
  for (const [place, scale, packed, notes, own, matches] of data.why[metric][`${system},${segment}`] || []) {
    const text = texts.get(place);
    found.set(place, {
      values: whyscore.values(scale, packed),
      borders: whyscore.borders(own || data.cuts[text] || ""),
      notes: notes ? notes.map((number) => data.notes[number]) : null,
      matches: matches || null,
    });
  }
  return found;
};

/** The texts of one system's segment: place (0 hypothesis, 1 source, 2.. references) -> number of the text. */
whyscore.texts = (data, system, segment) => {
  const own = data.own && data.own[`${system},${segment}`];
  const source = own ? own[0] : data.source[segment];
  const references = own ? own[1] : data.references[segment];
  const found = new Map([[0, data.hypotheses[system][segment]], [1, source]]);
  references.forEach((text, number) => found.set(2 + number, text));
  return found;
};

/** The value that is neither good nor bad: 0, but for metrics whose words all earn. */
whyscore.centre = (data, metric, place) => {
  const side = place === 0 ? "hypothesis" : place === 1 ? "source" : "reference";
  return data.centres[metric][side] || 0;
};

whyscore.number = (value, digits) => (value === null || Number.isNaN(value) ? "–" : value.toFixed(digits).replace("-", "−"));

/** A number with its sign and as many digits as it needs. */
whyscore.signed = (value) => {
  if (Number.isNaN(value)) return "no value";
  const size = Math.abs(value);
  const text = size === 0 ? "0" : size >= 100 ? size.toFixed(0) : size.toPrecision(3);
  return value < 0 ? `−${text}` : `+${text}`;
};

/** A new element; children are elements or plain texts, which are only ever set as text. */
whyscore.make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
};

/** Where a segment stands in the file that was read, where that is known and its name does not say it. */
whyscore.line = (data, segment) => {
  const line = data.first_line ? String(data.first_line + segment) : "";
  return line && line !== data.ids[segment] ? `line ${line}` : "";
};

/**
 * The address of the page: which controls are not at their defaults, and the segment that is open.
 * A change of controls is a step that Back undoes; the open segment belongs to the step.
 */
whyscore.address = (fields) => {
  const defaults = new Map(fields.map((field) => [field, field.value]));
  let next = false;
  return {
    /** Let what comes be a new step. */
    step: () => { next = true; },
    position(id) {
      const found = new URLSearchParams({ segment: id });
      for (const field of fields) if (field.value !== defaults.get(field)) found.set(field.id, field.value);
      const hash = `#${String(found).replaceAll("+", "%20")}`;
      if (hash !== location.hash) history[next ? "pushState" : "replaceState"](null, "", hash);
      next = false;
    },
    /** Set the controls and return the segment. */
    read() {
      const found = new URLSearchParams(location.hash.slice(1));
      for (const field of fields) {
        const value = found.get(field.id);
        field.value = value ?? defaults.get(field);
        if (value !== null && field.value !== value) field.value = defaults.get(field);
      }
      return found.get("segment");
    },
  };
};
