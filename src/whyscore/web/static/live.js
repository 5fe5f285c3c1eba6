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
  const question = { segment, metric: { name: $("metric").value }, explainer: { name: $("explainer").value } };
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
  const tell = () => { $("about").textContent = `${about($("metric"))} ${about($("explainer"))}`; };
  $("metric").addEventListener("change", tell);
  $("explainer").addEventListener("change", tell);
  tell();
  $("status").textContent = "";
  $("go").disabled = false;
}).catch(() => { $("status").textContent = "The server cannot be reached: load this page again."; });
$("form").addEventListener("submit", ask);
