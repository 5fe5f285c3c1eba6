"use strict";
// The live page: asks the server and shows words. Texts are only ever set as text.

const $ = (id) => document.getElementById(id);
let asking = null;

const element = (name, className, text) => {
  const found = document.createElement(name);
  if (className) found.className = className;
  if (text !== undefined) found.textContent = text;
  return found;
};

const fill = (select, components, chosen) => {
  for (const one of components) {
    const option = element("option", "", one.name);
    option.value = one.name;
    option.title = one.about;
    option.selected = one.name === chosen;
    select.append(option);
  }
};

/** A field for an option: a list of words, a number, or yes and no; empty means the default. */
const field = (part, name, values, about, standard) => {
  const owner = part === "settings" ? "" : `${$(part).value}: `;
  const label = element("label", "", `${owner}${name.replaceAll("_", " ")} `);
  const kinds = Array.isArray(values) ? values : values === "true or false" ? ["true", "false"] : null;
  const input = element(kinds ? "select" : "input");
  const first = element("option", "", standard === undefined ? "default" : `${standard} (default)`);
  first.value = "";
  if (kinds) input.append(first, ...kinds.filter((word) => word !== standard).map((word) => element("option", "", word)));
  else Object.assign(input, { type: "number", step: values === "a whole number" ? "1" : "any" });
  Object.assign(input.dataset, { part, name, kind: Array.isArray(values) ? "word" : "literal" });
  if (about) label.title = about;
  if (standard !== undefined && !kinds) input.placeholder = String(standard);
  label.append(input);
  return label;
};

/** What was set, by part of the question: metric, explainer or settings. */
const chosen = (part) => Object.fromEntries(
  [...document.querySelectorAll(`#options [data-part="${part}"]`)].filter((input) => input.value !== "")
    .map((input) => [input.dataset.name, input.dataset.kind === "word" ? input.value : JSON.parse(input.value)]),
);

const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toPrecision(3);

/** The largest size of a value in a text: its colour is the strongest. */
const strongest = (words) => words.reduce((most, word) => Math.max(most, Math.abs(word.importance)), 0);

const colour = (piece, strength) => {
  if (!(Math.abs(strength) >= 0.02)) return;
  piece.classList.add(strength < 0 ? "costs" : "earns");
  piece.style.setProperty("--strength", Math.abs(strength).toFixed(3));
};

const shown = (text) => {
  const box = element("div");
  const side = text.reference === null ? text.side : `${text.side} ${text.reference + 1}`;
  const line = element("div", "text");
  line.dir = "auto";
  box.append(element("div", "side", side), line);
  const points = Array.from(text.text);
  const most = strongest(text.words);
  let at = 0;
  for (const word of text.words) {
    line.append(points.slice(at, word.start).join(""));
    const piece = element("span", "word", word.text);
    colour(piece, word.importance / most);
    piece.tabIndex = 0;
    piece.title = signed(word.importance) + (word.note ? ` · ${word.note}` : "");
    piece.setAttribute("aria-label", `${word.text}: ${piece.title}`);
    piece.append(element("span", "points", signed(word.importance)));
    line.append(piece);
    at = word.end;
  }
  line.append(points.slice(at).join(""));
  return box;
};

const ask = async (event) => {
  event.preventDefault();
  if (asking) asking.abort();
  asking = new AbortController();
  const reference = $("reference").value, source = $("source").value;
  const segment = { hypothesis: $("hypothesis").value, references: reference ? [reference] : [] };
  if (source) segment.source = source;
  const question = {
    segment, metric: { name: $("metric").value, options: chosen("metric") },
    explainer: { name: $("explainer").value, options: chosen("explainer") }, settings: chosen("settings"),
  };
  $("status").textContent = "Scoring …";
  $("go").setAttribute("aria-busy", "true");
  try {
    const response = await fetch("/api/explain", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question), signal: asking.signal,
    });
    const answer = await response.json();
    $("answer").replaceChildren();
    $("signature").textContent = "";
    $("legend").hidden = !response.ok;
    if (!response.ok) {
      $("status").textContent = answer.error;
      $("go").removeAttribute("aria-busy");
      return;
    }
    const better = answer.higher_is_better ? "higher is better" : "lower is better";
    const probes = answer.probes ? ` · ${answer.probes} probes` : "";
    $("status").textContent = `${question.metric.name} ${answer.score.toPrecision(4)} · ${better}${probes}`;
    $("signature").textContent = answer.signature;
    $("answer").append(...answer.texts.map(shown));
  } catch (error) {
    if (error.name === "AbortError") return;
    $("status").textContent = "The server cannot be reached.";
  }
  $("go").removeAttribute("aria-busy");
};

$("status").textContent = "Loading metrics …";
fetch("/api/components").then((response) => response.json()).then((found) => {
  fill($("metric"), found.metrics, "chrf");
  fill($("explainer"), found.explainers, "erasure");
  const about = (select) => `${select.value}: ${select.selectedOptions[0].title}`;
  const tell = () => {
    $("about").textContent = `${about($("metric"))} ${about($("explainer"))}`;
    const own = (part, components) => Object.entries(components.find(({ name }) => name === $(part).value).options)
      .map(([name, values]) => field(part, name, values));
    const common = found.settings.map((one) => field("settings", one.name, one.values, one.about, one.default));
    $("options").replaceChildren(...common, ...own("metric", found.metrics), ...own("explainer", found.explainers));
  };
  $("metric").addEventListener("change", tell);
  $("explainer").addEventListener("change", tell);
  tell();
  $("status").textContent = "";
  $("go").disabled = false;
}).catch(() => { $("status").textContent = "The server cannot be reached: load this page again."; });
$("form").addEventListener("submit", ask);
