/* The list of segments: however long it is, only the rows in view exist. */
"use strict";

{
  const { make, number } = whyscore;
  const ROW = 60;
  const SPARE = 6;

  /** A list in a scrolling box. `open` hears which segment was chosen; `draw` returns the content of a row. */
  whyscore.list = (box, { open, draw }) => {
    const rail = make("div", { class: "rail", role: "presentation" });
    box.replaceChildren(rail);
    const state = { order: [], chosen: -1 };
    const rows = new Map();

    function refresh() {
      const first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE);
      const last = Math.min(state.order.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + SPARE);
      for (const [position, row] of rows) {
        if (position < first || position >= last) {
          row.remove();
          rows.delete(position);
        }
      }
      for (let position = first; position < last; position++) {
        if (rows.has(position)) continue;
        const row = item(position);
        rows.set(position, row);
        rail.append(row);
      }
    }

    function item(position) {
      const segment = state.order[position];
      const row = make("div", {
        class: "row", role: "option", id: `row-${position}`,
        "aria-setsize": state.order.length, "aria-posinset": position + 1, "aria-selected": String(segment === state.chosen),
      });
      row.style.transform = `translateY(${position * ROW}px)`;
      row.append(...draw(segment));
      row.addEventListener("click", () => choose(position));
      return row;
    }

    function choose(position, tell = true) {
      if (!state.order.length) return;
      const place = Math.max(0, Math.min(state.order.length - 1, position));
      state.chosen = state.order[place];
      for (const [other, row] of rows) row.setAttribute("aria-selected", String(other === place));
      const top = place * ROW;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
      refresh();
      box.setAttribute("aria-activedescendant", `row-${place}`);
      if (tell) open(state.chosen);
    }

    const position = () => state.order.indexOf(state.chosen);
    const page = () => Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const moves = {
      ArrowDown: () => position() + 1,
      ArrowUp: () => position() - 1,
      PageDown: () => position() + page(),
      PageUp: () => position() - page(),
      Home: () => 0,
      End: () => state.order.length - 1,
    };
    box.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      choose(moves[event.key]());
    });
    let waiting = false;
    box.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        refresh();
      });
    });
    new ResizeObserver(refresh).observe(box);

    return {
      /** Show these segments in this order, from the first. */
      show(order) {
        state.order = order;
        rail.style.height = `${order.length * ROW}px`;
        for (const row of rows.values()) row.remove();
        rows.clear();
        box.scrollTop = 0;
        refresh();
        if (order.length) choose(0);
      },
      choose(segment) {
        const place = state.order.indexOf(segment);
        if (place >= 0) choose(place);
        return place >= 0;
      },
      first: () => choose(0),
      step: (by) => choose(position() + by),
      get length() { return state.order.length; },
      get position() { return position(); },
    };
  };

  /** The content of a row: id, the beginning of a text, and where each system's score lies. */
  whyscore.row = (data, view, segment) => {
    const system = view.system < 0 ? 0 : view.system;
    const text = data.texts[data.hypotheses[system][segment]] ?? data.texts[data.source[segment]] ?? "";
    const scores = data.scores[view.metric];
    const digits = data.metrics[view.metric].digits;
    const track = make("span", { class: "track", "aria-hidden": "true" });
    data.systems.forEach((name, i) => {
      const value = scores[i][segment];
      if (value === null) return;
      const dot = make("i", { class: i === view.system ? "dot chosen" : i === view.other ? "dot other" : "dot" });
      dot.style.left = `${whyscore.share(view, value) * 100}%`;
      track.append(dot);
    });
    const value = whyscore.value(data, view, segment);
    const other = view.other >= 0 ? scores[view.other][segment] : null;
    const gap = value === null || other === null ? null : make("span", { class: "gap" }, difference(value - other, digits));
    return [
      make("span", { class: "name", title: whyscore.line(data, segment) }, make("bdi", {}, data.ids[segment])),
      make("span", { class: "start", dir: "auto" }, text.slice(0, 120)),
      make("span", { class: "score" }, number(value, digits), gap),
      track,
    ];
  };

  const difference = (value, digits) => {
    const size = Math.abs(value).toFixed(digits);
    return `${Number(size) === 0 ? "±" : value < 0 ? "−" : "+"}${size}`;
  };

  /** What the numbers and dots of the rows stand for. */
  whyscore.rowLegend = (data, view) => {
    const metric = data.metrics[view.metric].name;
    const dot = (kind) => make("i", { class: `dot ${kind}`, "aria-hidden": "true" });
    const name = (system) => make("bdi", {}, data.systems[system]);
    if (data.systems.length < 2) return [make("bdi", {}, metric)];
    if (view.system < 0) return [make("bdi", {}, metric), `, mean of ${data.systems.length} systems; `, dot(""), "one system"];
    if (view.other < 0) return [make("bdi", {}, metric), ": ", dot("chosen"), name(view.system), ", ", dot(""), "others"];
    return [make("bdi", {}, metric), ": ", dot("chosen"), name(view.system), ", and its distance to ", dot("other"), name(view.other)];
  };

  /** A segment's value under the chosen metric: one system's, or the mean over all. */
  whyscore.value = (data, view, segment) => {
    const rows = data.scores[view.metric];
    if (view.system >= 0) return rows[view.system][segment];
    const known = rows.map((row) => row[segment]).filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  };

  whyscore.share = (view, value) => {
    const [low, high] = view.range;
    return high > low ? 0.03 + 0.94 * ((value - low) / (high - low)) : 0.5;
  };
}
