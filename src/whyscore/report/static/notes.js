/* Notes of the reader on segments, kept in this browser; the list as a file; keys. */
"use strict";

{
  const { make } = whyscore;
  const by = (id) => document.getElementById(id);

  /** Notes by segment: {rating, comment}. Where the browser keeps nothing, they last as long as the page. */
  whyscore.notes = (data) => {
    const key = `whyscore notes: ${document.title}, ${data.ids.length} segments, ${data.systems.join(", ")}`;
    let kept = {};
    try {
      kept = JSON.parse(localStorage.getItem(key) || "{}");
    } catch {
      kept = {};
    }
    const notes = new Map(Object.entries(kept));
    return {
      of: (segment) => notes.get(data.ids[segment]) || { rating: "", comment: "" },
      has: (segment) => notes.has(data.ids[segment]),
      set(segment, note) {
        if (note.rating || note.comment) notes.set(data.ids[segment], note);
        else notes.delete(data.ids[segment]);
        try {
          localStorage.setItem(key, JSON.stringify(Object.fromEntries(notes)));
        } catch {
          by("note-kept").textContent = "This browser does not keep notes: save the list before you close the page.";
        }
      },
      get size() { return notes.size; },
    };
  };

  /** A cell of CSV that no spreadsheet takes for a formula. */
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  /** The segments in this order as CSV: texts, every score, human scores, and the reader's notes. */
  whyscore.csv = (data, segments, notes) => {
    const text = (place) => (place >= 0 ? data.texts[place] : null);
    const references = Math.max(0, ...data.references.map((list) => list.length));
    const columns = [
      ["segment", (segment) => data.ids[segment]],
      ...(data.first_line ? [["line", (segment) => data.first_line + segment]] : []),
      ["source", (segment) => text(data.source[segment])],
      ...Array.from({ length: references }, (_, k) => [references > 1 ? `reference ${k + 1}` : "reference", (segment) => text(data.references[segment][k] ?? -1)]),
      ...data.systems.flatMap((name, system) => [
        [name, (segment) => text(data.hypotheses[system][segment])],
        ...data.metrics.map((metric, k) => [`${name}: ${metric.name}`, (segment) => data.scores[k][system][segment]]),
        ...data.human.map((human) => [`${name}: human ${human.name}`, (segment) => human.values[system][segment]]),
      ]),
      ["rating", (segment) => notes.of(segment).rating],
      ["comment", (segment) => notes.of(segment).comment],
    ];
    const lines = [columns.map(([name]) => cell(name)), ...segments.map((segment) => columns.map(([, read]) => cell(read(segment))))];
    return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
  };

  /** Let the reader save a text as a file. The mark at its start tells spreadsheets that it is UTF-8. */
  whyscore.save = (name, text) => {
    const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
    make("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };

  /** Keys that work wherever no text is typed. */
  whyscore.keys = (actions) => {
    addEventListener("keydown", (event) => {
      const typing = event.target.closest && event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
      if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
      event.preventDefault();
      actions[event.key]();
    });
  };
}
