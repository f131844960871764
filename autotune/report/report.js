"use strict";
// Draws the whole report from the JSON in #data. One set of filters applies to all charts and to the table.
// Names and details come from files of anybody: they are only ever written as text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const BINS = 16; // colours from the fastest to the slowest trial
  const FAILED = 255; // the bin of a trial without a time
  const LEVELS = 48; // of a number on an axis of the parallel coordinates
  const PAGE = 50; // rows of the table at once
  const MAX_TABLE = 500; // rows of a chart's table
  const NEAR = 1.1; // times the best: what counts as good
  const SHADES = {
    light: ["#0b2a5b", "#2878b5", "#b4cadb"],
    dark: ["#fff0b3", "#4cb0da", "#2c4d68"],
  };
  const MEASURES = [
    ["time_ms", "time (ms)", true],
    ["energy_j", "energy (J)", true],
    ["compile_ms", "compile time (ms)", false],
    ["cost_s", "cost of the trial (s)", false],
    ["registers", "registers per thread", false],
    ["spill_bytes", "spilled bytes per thread", false],
    ["shared_bytes", "shared memory per block (bytes)", false],
    ["occupancy", "occupancy", false],
    ["order", "evaluation", false],
    ["elapsed", "summed cost so far (s)", false],
  ];

  let view = null; // the search that is shown
  let charts = [];
  let filters = new Map(); // axis to the set of its allowed positions, or to a range
  let theme = "light";

  // ------------------------------------------------------------------------------------- elements and text

  function el(tag, settings = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(settings)) {
      if (name === "text") made.textContent = value;
      else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const bdi = (text) => el("bdi", { text });
  const number = (value, digits = 4) =>
    value === null || value === undefined || Number.isNaN(value)
      ? "–"
      : Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
  const whole = (value) => value.toLocaleString("en");
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
  const short = (text, most = 40) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  // On a canvas nothing isolates marks that turn the writing round.
  const plain = (text) => String(text).replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  const shown = (value) => (value === true ? "True" : value === false ? "False" : String(value));
  const words = (status) => status.replaceAll("_", " ");

  function tableOf(columns, rows) {
    const head = el("tr", {}, ...columns.map((text) => el("th", { scope: "col", text })));
    const body = rows.slice(0, MAX_TABLE).map((row) =>
      el("tr", {}, ...row.map((cell) =>
        typeof cell === "number" ? el("td", { class: "number", text: number(cell) }) : el("td", { text: cell }))));
    const made = el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
    if (rows.length > MAX_TABLE)
      made.append(el("p", { class: "soft", text: `The first ${MAX_TABLE} of ${whole(rows.length)} rows; the table of trials has all.` }));
    return made;
  }

  // ------------------------------------------------------------------------------------------ data of a search

  function prepare(search) {
    const columns = search.columns;
    const count = columns.status.length;
    const numbers = (column) =>
      Float64Array.from({ length: count }, (_, row) => (column && column[row] !== null ? column[row] : NaN));
    const raw = { ...columns, order: Array.from({ length: count }, (_, row) => row + 1) };
    if (columns.cost_s) {
      let sum = 0;
      raw.elapsed = columns.cost_s.map((cost) => (sum += cost || 0));
    }
    const parameters = search.parameters.map((parameter, place) => ({
      id: `p${place}`, title: parameter.name, isCategory: true, values: parameter.values.map(shown),
      raw: parameter.values, macros: parameter.macros, data: columns.configs[place],
    }));
    const measures = MEASURES.filter(([id]) => raw[id]).map(([id, title, isLog]) => ({
      id, title: id === "order" && !search.hasOrder ? "number" : title, isLog, data: numbers(raw[id]) }));
    const status = { id: "status", title: "status", isCategory: true, values: search.statuses, data: columns.status };
    const limit = columns.limit && { id: "limit", title: "occupancy is limited by", isCategory: true, values: search.limits,
      data: columns.limit.map((place) => (place === null ? -1 : place)) };
    const time = numbers(columns.time_ms);
    const timed = [...time.keys()].filter((row) => !Number.isNaN(time[row])).sort((a, b) => time[a] - time[b]);
    const bins = new Uint8Array(count).fill(FAILED);
    timed.forEach((row, rank) => { bins[row] = Math.floor((rank * BINS) / timed.length); });
    const failed = [...time.keys()].filter((row) => Number.isNaN(time[row]));
    const axes = [...parameters, status, ...(limit ? [limit] : []), ...measures];
    return {
      ...search, count, columns, parameters, measures, status, limit, time, bins, axes, timed, failed,
      // slow ones first, so that fast ones lie on top
      slowFirst: Int32Array.from([...failed, ...timed.slice().reverse()]),
      varying: parameters.filter((axis) => new Set(axis.data).size > 1),
      axis: (id) => axes.find((axis) => axis.id === id),
      bestTime: search.best === null ? NaN : time[search.best],
      selected: new Uint8Array(count).fill(1), selectedCount: count,
    };
  }

  const text = (axis, row) =>
    axis.isCategory ? (axis.data[row] < 0 ? "–" : axis.values[axis.data[row]]) : number(axis.data[row]);
  const configText = (row) => view.parameters.map((axis) => `${axis.title}=${text(axis, row)}`).join(" ");
  const outcome = (row) =>
    Number.isNaN(view.time[row]) ? words(view.statuses[view.columns.status[row]]) : `${number(view.time[row])} ms`;

  // ---------------------------------------------------------------------------------------------------- filters

  function applyFilters() {
    const { selected, count } = view;
    selected.fill(1);
    for (const [id, filter] of filters) {
      const column = view.axis(id).data;
      if (filter.set) {
        for (let row = 0; row < count; row++) if (column[row] < 0 || !filter.set[column[row]]) selected[row] = 0;
      } else {
        for (let row = 0; row < count; row++) if (!(column[row] >= filter.low && column[row] <= filter.high)) selected[row] = 0;
      }
    }
    let sum = 0;
    for (let row = 0; row < count; row++) sum += selected[row];
    view.selectedCount = sum;
    showFilters();
    redraw();
    table.show(0);
  }

  /** Allow some positions of a category; all or none of them take the filter away. */
  function allow(axis, positions) {
    const set = new Uint8Array(axis.values.length);
    for (const position of positions) set[position] = 1;
    const chosen = set.reduce((sum, one) => sum + one, 0);
    if (chosen === 0 || chosen === set.length) filters.delete(axis.id);
    else filters.set(axis.id, { set });
  }

  function toggle(axis, position) {
    const filter = filters.get(axis.id);
    const chosen = new Set(filter ? [...filter.set.keys()].filter((place) => filter.set[place]) : []);
    if (!chosen.delete(position)) chosen.add(position);
    allow(axis, chosen);
    applyFilters();
  }

  /** A range of an axis in its own unit: positions of a category, else numbers. */
  function restrict(axis, low, high) {
    if (!axis.isCategory) filters.set(axis.id, { low, high });
    else allow(axis, [...axis.values.keys()].filter((place) => place >= low && place <= high));
  }

  function filterText(axis, filter) {
    if (!filter.set) return `${axis.title}: ${number(filter.low, 3)} to ${number(filter.high, 3)}`;
    const chosen = axis.values.filter((_, place) => filter.set[place]);
    return `${axis.title}: ${chosen.length > 4 ? `${chosen.length} values` : chosen.map((one) => short(one, 20)).join(", ")}`;
  }

  function showFilters() {
    $("count").textContent = `${whole(view.selectedCount)} of ${whole(view.count)} trials`;
    const chips = [...filters].map(([id, filter]) => {
      const said = filterText(view.axis(id), filter);
      return el("button", { type: "button", class: "chip", "aria-label": `Remove filter ${said}`, title: "Remove this filter",
        onclick: () => { filters.delete(id); applyFilters(); } }, bdi(short(said, 80)), " ×");
    });
    if (filters.size) chips.push(el("button", { type: "button", id: "clear", text: "Clear filters", onclick: clearFilters }));
    $("chips").replaceChildren(...chips);
    for (const box of document.querySelectorAll("#filter-values input")) {
      const filter = filters.get(box.dataset.axis);
      box.checked = filter ? Boolean(filter.set && filter.set[box.dataset.place]) : false;
    }
  }

  function clearFilters() {
    filters.clear();
    applyFilters();
  }

  function fillFilterPanel() {
    const sets = [view.status, ...(view.limit ? [view.limit] : []), ...view.varying].map((axis) => {
      const counts = new Int32Array(axis.values.length);
      for (const place of axis.data) if (place >= 0) counts[place]++;
      const boxes = axis.values.map((value, place) => counts[place] === 0 ? "" :
        el("label", {},
          el("input", { type: "checkbox", "data-axis": axis.id, "data-place": place, onchange: () => toggle(axis, place) }),
          " ", bdi(short(axis === view.status ? words(value) : value)), el("span", { class: "soft", text: ` ${whole(counts[place])}` })));
      return el("fieldset", {}, el("legend", {}, bdi(short(axis.title, 60))), ...boxes);
    });
    $("filter-values").replaceChildren(...sets);
  }

  // ----------------------------------------------------------------------------------------- colours and scales

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function mix(one, other, share) {
    const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const [from, to] = [parts(one), parts(other)];
    return `#${from.map((part, at) => Math.round(part + (to[at] - part) * share).toString(16).padStart(2, "0")).join("")}`;
  }

  /** From the fastest (0) to the slowest (1). */
  function shade(share) {
    const [first, middle, last] = SHADES[theme];
    return share < 0.5 ? mix(first, middle, 2 * share) : mix(middle, last, 2 * share - 1);
  }

  function inkOn(colour) {
    const light = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)).reduce((sum, part, at) => sum + part * [0.3, 0.59, 0.11][at], 0);
    return light > 140 ? "#101418" : "#ffffff";
  }

  const CATEGORY = { light: ["#0b5cad", "#c2570c", "#1a7f5a", "#8a3fa0", "#6b6b00"], dark: ["#7cb8f2", "#ff9d5c", "#5fd0a5", "#d7a3e8", "#d6d06a"] };

  function palette() {
    return {
      ink: css("--ink"), soft: css("--soft"), line: css("--line"), grid: css("--grid"), accent: css("--accent"),
      strong: css("--strong"), fail: css("--fail"), faint: css("--faint"), card: css("--card"),
      bins: Array.from({ length: BINS }, (_, bin) => shade(bin / (BINS - 1))), category: CATEGORY[theme],
    };
  }

  function niceStep(span, steps) {
    const rough = span / steps;
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.999);
  }

  function numberScale(low, high, from, to, isLog, steps = 6) {
    if (!(low < high)) [low, high] = isLog ? [low / 1.5 || 0.1, low * 1.5 || 10] : [low - 0.5, low + 0.5];
    const map = isLog ? Math.log : (value) => value;
    const back = isLog ? Math.exp : (value) => value;
    const [start, end] = [map(low), map(high)];
    const ticks = [];
    if (isLog && high / low >= 8) {
      const sparse = Math.log10(high / low) > 3;
      for (let exponent = Math.floor(Math.log10(low)); exponent <= Math.log10(high); exponent++)
        for (const digit of sparse ? [1] : [1, 2, 5]) {
          const value = digit * 10 ** exponent;
          if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
        }
    } else {
      const step = niceStep(high - low, steps);
      for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) ticks.push(Number(value.toPrecision(12)));
    }
    return {
      at: (value) => from + ((map(value) - start) / (end - start)) * (to - from),
      invert: (pixel) => back(start + ((pixel - from) / (to - from)) * (end - start)),
      ticks: ticks.map((value) => [value, number(value, 6)]),
    };
  }

  function categoryScale(axis, from, to) {
    const step = (to - from) / axis.values.length;
    const every = Math.ceil(14 / Math.abs(step));
    return {
      step,
      at: (position) => from + (position + 0.5) * step,
      invert: (pixel) => (pixel - from) / step - 0.5,
      ticks: axis.values.map((value, place) => [place, plain(value)]).filter((_, place) => place % every === 0),
    };
  }

  function extent(column, isLog) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of column) {
      if (Number.isNaN(value) || (isLog && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? [low, high] : [isLog ? 0.1 : 0, 1];
  }

  function scaleOf(axis, from, to, steps) {
    if (axis.isCategory) return categoryScale(axis, from, to);
    const [low, high] = extent(axis.data, axis.isLog);
    const margin = axis.isLog ? 1 : (high - low) * 0.03;
    return numberScale(axis.isLog ? low / 1.05 : low - margin, axis.isLog ? high * 1.05 : high + margin, from, to, axis.isLog, steps);
  }

  // -------------------------------------------------------------------------------------------------- charts

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const chart = charts.find((one) => one.canvas === entry.target);
      if (!chart) continue;
      chart.isVisible = entry.isIntersecting;
      if (chart.isVisible && chart.isDirty) paint(chart);
    }
  }, { rootMargin: "150px" });

  /** Those on the screen at once; the others when they come into sight. */
  function redraw() {
    for (const chart of charts) {
      chart.isDirty = true;
      if (chart.isVisible) paint(chart);
    }
  }

  /**
   * A figure with its choices, a canvas, a sentence and a table that says the same.
   * `draw(context, width, height, colours, chosen)` returns marks: places that can be pointed at.
   */
  function addChart(parent, { id, title, isWide, height, minWidth, choices = [], draw, caption, rows }) {
    const canvas = el("canvas", { tabindex: "0", role: "img", id });
    const holder = el("div", { class: "canvas" }, canvas);
    if (minWidth) {
      holder.style.overflowX = "auto";
      canvas.style.touchAction = "pan-x pan-y";
    }
    const chosen = {};
    const selects = choices.map(({ name, label, options, value }) => {
      const select = el("select", { id: `${id}-${name}`, onchange: () => { chosen[name] = select.value; refresh(chart); } },
        ...options.map(([key, said]) => el("option", { value: key, text: short(said, 60) })));
      select.value = value;
      chosen[name] = value;
      return el("label", {}, `${label} `, select);
    });
    const sentence = el("figcaption", { id: `${id}-said` });
    const details = el("details", {}, el("summary", { text: `Table: ${title}` }), el("div"));
    details.addEventListener("toggle", () => fillTable(chart));
    const figure = el("figure", { class: isWide ? "wide" : undefined },
      el("div", { class: "bar" }, el("h3", { text: title }), el("div", { class: "choices" }, ...selects)), holder, sentence, details);
    canvas.setAttribute("aria-describedby", `${id}-said`);
    const chart = { id, title, canvas, holder, chosen, draw, height, minWidth, caption, rows, sentence, details,
      marks: null, cursor: -1, isDirty: true, isVisible: false, figure };
    listen(chart);
    parent.append(figure);
    charts.push(chart);
    seen.observe(canvas);
    return chart;
  }

  function refresh(chart) {
    chart.isDirty = true;
    paint(chart);
  }

  function choose(chart, chosen) {
    for (const [name, value] of Object.entries(chosen)) {
      $(`${chart.id}-${name}`).value = value;
      chart.chosen[name] = value;
    }
    refresh(chart);
  }

  function fillTable(chart) {
    if (chart.details.open) chart.details.lastChild.replaceChildren(tableOf(...chart.rows(chart.chosen)));
  }

  function paint(chart) {
    const { canvas } = chart;
    const width = Math.max(chart.holder.clientWidth, chart.minWidth ? chart.minWidth() : 0);
    if (!width) return;
    const height = typeof chart.height === "function" ? chart.height(width, chart.chosen) : chart.height;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
      canvas.style.width = chart.minWidth ? `${width}px` : "100%";
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    chart.marks = chart.draw(context, width, height, palette(), chart.chosen) || { list: () => [] };
    chart.isDirty = false;
    const said = chart.caption ? chart.caption(chart.chosen) : "";
    chart.sentence.textContent = said;
    canvas.setAttribute("aria-label", `${chart.title}. Arrow keys move through it, Enter opens or filters.`);
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn || 0) + 1);
    fillTable(chart);
  }

  // Marks: `list()` for the keyboard, `find(x, y)` for the pointer, `brush(box)` where a range can be dragged.
  function nearest(list, reach = 14) {
    return (x, y) => {
      let [found, least] = [null, reach * reach];
      for (const mark of list) {
        const inside = mark.width && x >= mark.left && x <= mark.left + mark.width && y >= mark.top && y <= mark.top + mark.height;
        const far = inside ? 0 : mark.width ? Infinity : (mark.x - x) ** 2 + (mark.y - y) ** 2;
        if (far < least) [found, least] = [mark, far];
      }
      return found;
    };
  }

  const boxes = (list) => ({ list: () => list, find: nearest(list) });

  function listen(chart) {
    const { canvas } = chart;
    let from = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (from && chart.marks.brush) {
        drawBrush(chart, from, [x, y]);
        return;
      }
      const mark = chart.marks && chart.marks.find && chart.marks.find(x, y);
      showTip(mark, event.clientX, event.clientY);
      canvas.style.cursor = mark && mark.act ? "pointer" : chart.marks && chart.marks.brush ? "crosshair" : "default";
    });
    canvas.addEventListener("pointerleave", () => showTip(null));
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !chart.marks) return;
      from = place(event);
      if (chart.marks.brush && event.pointerType !== "touch") canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!from) return;
      const [start, end] = [from, place(event)];
      from = null;
      if (Math.hypot(end[0] - start[0], end[1] - start[1]) < 5) {
        const mark = chart.marks.find && chart.marks.find(...end);
        if (mark && mark.act) mark.act();
      } else if (chart.marks.brush) {
        chart.marks.brush(Math.min(start[0], end[0]), Math.min(start[1], end[1]), Math.max(start[0], end[0]), Math.max(start[1], end[1]));
      }
    });
    canvas.addEventListener("pointercancel", () => { from = null; });
    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      const list = chart.marks ? chart.marks.list() : [];
      if (event.key in steps && list.length) {
        chart.cursor = (chart.cursor + steps[event.key] + list.length) % list.length;
        const mark = list[chart.cursor];
        refreshWithCursor(chart, mark);
        event.preventDefault();
      } else if ((event.key === "Enter" || event.key === " ") && list[chart.cursor]) {
        if (list[chart.cursor].act) list[chart.cursor].act();
        event.preventDefault();
      } else if (event.key === "Escape") showTip(null);
    });
    canvas.addEventListener("blur", () => { if (chart.cursor >= 0) { chart.cursor = -1; showTip(null); refresh(chart); } });
  }

  function refreshWithCursor(chart, mark) {
    paint(chart);
    const context = chart.canvas.getContext("2d");
    context.strokeStyle = css("--strong");
    context.lineWidth = 2;
    if (mark.width) context.strokeRect(mark.left, mark.top, mark.width, mark.height);
    else {
      context.beginPath();
      context.arc(mark.x, mark.y, 7, 0, 7);
      context.stroke();
    }
    const box = chart.canvas.getBoundingClientRect();
    showTip(mark, box.left + (mark.width ? mark.left + mark.width : mark.x), box.top + (mark.width ? mark.top : mark.y));
    $("live").textContent = mark.tip;
  }

  function drawBrush(chart, [x0, y0], [x1, y1]) {
    paint(chart);
    const context = chart.canvas.getContext("2d");
    context.fillStyle = css("--accent");
    context.globalAlpha = 0.18;
    context.fillRect(x0, y0, x1 - x0, y1 - y0);
    context.globalAlpha = 1;
    context.strokeStyle = css("--accent");
    context.lineWidth = 1;
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
  }

  function showTip(mark, x, y) {
    const tip = $("tip");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = short(mark.tip, 600);
    tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - tip.offsetHeight - 8))}px`;
  }

  function trialTip(row) {
    const lines = [`Trial ${row + 1}: ${outcome(row)}`];
    const note = view.details[view.columns.detail[row]].split("\n")[0];
    if (note) lines.push(short(note, 120));
    lines.push(...view.varying.slice(0, 14).map((axis) => `${short(axis.title, 30)} = ${short(text(axis, row), 40)}`));
    return lines.join("\n");
  }

  function frame(context, colours, box, sx, sy, xTitle, yTitle) {
    context.strokeStyle = colours.grid;
    context.lineWidth = 1;
    context.fillStyle = colours.soft;
    if (sy) {
      context.textAlign = "right";
      for (const [value, said] of sy.ticks) {
        const y = Math.round(sy.at(value)) + 0.5;
        line(context, box.left, y, box.right, y);
        context.fillText(short(said, 12), box.left - 6, y);
      }
      context.textAlign = "left";
      context.fillText(short(plain(yTitle), 60), Math.max(2, box.left - 50), box.top - 12);
    }
    context.textAlign = "center";
    let end = -Infinity;
    for (const [value, said] of sx.ticks) {
      const x = Math.round(sx.at(value)) + 0.5;
      const label = short(said, 14);
      const half = context.measureText(label).width / 2;
      line(context, x, box.top, x, box.bottom);
      if (x - half > end + 6 && x + half < box.right + 12) {
        context.fillText(label, x, box.bottom + 12);
        end = x + half;
      }
    }
    context.fillText(short(plain(xTitle), 60), (box.left + box.right) / 2, box.bottom + 28);
    context.textAlign = "left";
  }

  function line(context, x0, y0, x1, y1) {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  function cross(context, x, y, size) {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size);
    context.lineTo(x - size, y + size);
  }

  /**
   * Trials as points. The places `px` and `py` are in pixels, NaN where a trial is not in the picture;
   * `colourOf(row)` gives a position in `colours`, or FAILED for a cross.
   */
  function drawPoints(context, px, py, colourOf, colours, palette) {
    const size = view.count > 4000 ? 3 : view.count > 600 ? 4 : 6;
    if (view.selectedCount < view.count) {
      context.fillStyle = palette.faint;
      for (let row = 0; row < view.count; row++)
        if (!view.selected[row] && px[row] === px[row]) context.fillRect(px[row] - 1, py[row] - 1, 2, 2);
    }
    let last = -1;
    const crosses = [];
    for (const row of view.slowFirst) {
      if (!view.selected[row] || px[row] !== px[row] || py[row] !== py[row]) continue;
      const colour = colourOf(row);
      if (colour === FAILED) {
        crosses.push(row);
        continue;
      }
      if (colour !== last) {
        context.fillStyle = colours[colour % colours.length];
        last = colour;
      }
      context.fillRect(px[row] - size / 2, py[row] - size / 2, size, size);
    }
    context.strokeStyle = palette.fail;
    context.lineWidth = 1.2;
    context.beginPath();
    for (const row of crosses) cross(context, px[row], py[row], size > 4 ? 3.5 : 2);
    context.stroke();
    const best = view.best;
    if (best !== null && px[best] === px[best] && view.selected[best]) {
      context.strokeStyle = palette.strong;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(px[best], py[best], size + 3, 0, 7);
      context.stroke();
    }
  }

  function pointMarks(px, py, brush) {
    const mark = (row) => ({ x: px[row], y: py[row], tip: trialTip(row), act: () => openTrial(row) });
    const visible = () => [...px.keys()].filter((row) => view.selected[row] && px[row] === px[row] && py[row] === py[row]);
    let sorted = null;
    return {
      brush,
      find: (x, y) => {
        let [found, least] = [-1, 144];
        for (let row = 0; row < view.count; row++) {
          const far = (px[row] - x) ** 2 + (py[row] - y) ** 2;
          if (far < least && view.selected[row]) [found, least] = [row, far];
        }
        return found < 0 ? null : mark(found);
      },
      list: () => {
        sorted = sorted || visible().sort((a, b) => px[a] - px[b] || py[a] - py[b]);
        return new Proxy(sorted, { get: (rows, key) => (typeof key === "string" && /^\d+$/.test(key) ? mark(rows[key]) : rows[key]) });
      },
    };
  }

  /** A steady place beside the middle, so that points of a category do not hide each other. */
  const scatter = (row) => (((row * 2654435761) % 4096) / 4096 - 0.5) * 0.6;

  function placesOf(axis, scale) {
    const places = new Float64Array(view.count);
    for (let row = 0; row < view.count; row++) {
      const value = axis.data[row];
      places[row] = axis.isCategory ? (value < 0 ? NaN : scale.at(value + scatter(row)))
        : axis.isLog && !(value > 0) ? NaN : scale.at(value);
    }
    return places;
  }

  function brushed(axes, scales) {
    return (x0, y0, x1, y1) => {
      const ends = [[scales[0].invert(x0), scales[0].invert(x1)], [scales[1].invert(y1), scales[1].invert(y0)]];
      axes.forEach((axis, at) => {
        const [low, high] = ends[at].slice().sort((a, b) => a - b);
        if (axis.isCategory) restrict(axis, Math.ceil(low - 0.35), Math.floor(high + 0.35));
        else restrict(axis, low, high);
      });
      applyFilters();
    };
  }

  /** Points of one axis over another; trials that have no value on the second stand in a row of their own. */
  function drawScatter(context, width, height, colours, xAxis, yAxis, colour) {
    const box = { left: 58, right: width - 14, top: 38, bottom: height - 40 };
    const sx = scaleOf(xAxis, box.left, box.right, width / 90);
    const sy = scaleOf(yAxis, box.bottom, box.top + 16, height / 60);
    frame(context, colours, box, sx, sy, xAxis.title, yAxis.title);
    const [px, py] = [placesOf(xAxis, sx), placesOf(yAxis, sy)];
    let missing = 0;
    for (let row = 0; row < view.count; row++)
      if (Number.isNaN(py[row]) && Number.isNaN(view.time[row])) {
        py[row] = box.top + 2;
        missing++;
      }
    if (missing) {
      context.fillStyle = colours.fail;
      context.textAlign = "right";
      context.fillText("× failed", box.right, box.top - 12);
      context.textAlign = "left";
    }
    const byCategory = colour && colour.isCategory;
    const shades = byCategory ? colours.category : colours.bins;
    drawPoints(context, px, py, (row) => (view.bins[row] === FAILED ? FAILED : byCategory ? Math.max(0, colour.data[row]) : view.bins[row]), shades, colours);
    if (byCategory) {
      let x = box.left + 90;
      colour.values.forEach((value, place) => {
        context.fillStyle = shades[place % shades.length];
        context.fillRect(x, box.top - 17, 10, 10);
        context.fillStyle = colours.ink;
        const label = short(plain(value), 16);
        context.fillText(label, x + 14, box.top - 12);
        x += context.measureText(label).width + 26;
      });
    }
    return pointMarks(px, py, brushed([xAxis, yAxis], [sx, sy]));
  }

  function pointRows(xAxis, yAxis) {
    const rows = [];
    for (let row = 0; row < view.count; row++)
      if (view.selected[row]) rows.push([row + 1, text(xAxis, row), text(yAxis, row), words(view.statuses[view.columns.status[row]])]);
    return [["trial", xAxis.title, yAxis.title, "status"], rows];
  }

  const BAR = 24;

  /** Bars from top to bottom: `{label, value, text, tip, act, isStrong, range, dot}`; a range instead of a bar where it is given. */
  function drawBars(context, width, height, colours, bars, { unit, isLog = false } = {}) {
    const widest = Math.max(0, ...bars.map((bar) => context.measureText(short(plain(bar.label), 44)).width));
    const left = Math.min(widest + 14, width * 0.44);
    const room = Math.max(0, ...bars.map((bar) => context.measureText(bar.text || "").width)) + 12;
    const box = { left, right: Math.max(left + 40, width - Math.min(room, width * 0.36)), top: 6, bottom: 6 + BAR * bars.length };
    const values = bars.flatMap((bar) => [bar.value, ...(bar.range || []), ...(bar.dot ? [bar.dot] : [])]).filter((value) => value > 0);
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0.1, 1];
    const scale = numberScale(isLog ? low / 1.3 : 0, high, box.left, box.right, isLog, width / 120);
    frame(context, colours, box, scale, null, unit, "");
    const marks = [];
    bars.forEach((bar, place) => {
      const y = box.top + BAR * (place + 0.5);
      context.fillStyle = colours.ink;
      context.textAlign = "right";
      context.fillText(fitMiddle(context, plain(bar.label), left - 10), left - 8, y);
      context.textAlign = "left";
      const colour = bar.isStrong ? colours.strong : colours.accent;
      let end = box.left;
      if (bar.range) {
        const [from, to] = bar.range.map(scale.at);
        context.fillStyle = colours.faint;
        context.fillRect(from, y - 4, Math.max(2, to - from), 8);
        context.fillStyle = colours.ink;
        context.fillRect(scale.at(bar.value) - 1.5, y - 8, 3, 16);
        context.fillStyle = colours.strong;
        context.beginPath();
        context.arc(scale.at(bar.dot), y, 4, 0, 7);
        context.fill();
        end = to;
      } else if (bar.value > 0) {
        end = scale.at(bar.value);
        context.fillStyle = colour;
        context.fillRect(box.left, y - 7, Math.max(1, end - box.left), 14);
      }
      context.fillStyle = bar.isFailed ? colours.fail : colours.ink;
      if (bar.text) context.fillText(fit(context, bar.text, width - Math.max(end, box.left) - 8), Math.max(end, box.left) + 6, y);
      marks.push({ left: 0, top: y - BAR / 2, width, height: BAR, x: end, y, tip: bar.tip || `${bar.label}: ${bar.text}`, act: bar.act });
    });
    return boxes(marks);
  }

  function fit(context, label, room) {
    if (context.measureText(label).width <= room) return label;
    let most = label.length - 1;
    while (most > 1 && context.measureText(`${label.slice(0, most)}…`).width > room) most--;
    return `${label.slice(0, most)}…`;
  }

  /** The same for a name: its end tells it from its neighbours. */
  function fitMiddle(context, label, room) {
    let kept = label.length;
    const cut = () => `${label.slice(0, Math.ceil(kept / 2))}…${label.slice(label.length - Math.floor(kept / 2))}`;
    if (context.measureText(label).width <= room) return label;
    while (kept > 2 && context.measureText(cut()).width > room) kept--;
    return cut();
  }

  const barHeight = (count) => BAR * Math.max(1, count) + 46;

  // ------------------------------------------------------------------------------------------------ sections

  function section(id, title) {
    const grid = el("div", { class: "grid" });
    $("main").append(el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title`, text: title }), grid));
    $("sections").append(el("a", { href: `#${id}`, text: title }));
    return grid;
  }

  const panel = (...children) => el("div", { class: "panel wide" }, ...children);

  function addHeadline() {
    const grid = section("headline", "Result");
    const items = view.headline.map(({ title, value, note }) =>
      el("li", {}, el("p", { class: "name", text: title }), el("p", { class: "value", text: value }), el("p", { class: "note", text: note })));
    grid.append(el("ul", { class: "cards wide" }, ...items));
    if (view.best === null) return;
    grid.append(panel(el("h3", { text: "Best configuration" }), el("p", {}, bdi(configText(view.best))),
      el("p", {}, el("button", { type: "button", id: "open-best", text: "As a command and as macros", onclick: () => openTrial(view.best) }))));
  }

  function addProgress() {
    if (!view.hasOrder) return;
    const grid = section("progress", "Progress");
    const time = view.axis("time_ms");
    const overs = ["order", "elapsed"].filter((id) => view.axis(id)).map((id) => [id, view.axis(id).title]);
    const kinds = view.status.values.map((value, place) => [value, place]).filter(([value]) => value !== "ok");
    const best = new Float64Array(view.count);
    let least = Infinity;
    for (let row = 0; row < view.count; row++) best[row] = least = view.time[row] < least ? view.time[row] : least;
    if (time) addChart(grid, {
      id: "progress-chart", title: "Every trial and the best so far", isWide: true, height: () => 320 + 16 * kinds.length,
      choices: overs.length > 1 ? [{ name: "over", label: "over", options: overs, value: "order" }] : [],
      draw: (context, width, height, colours, chosen) => {
        const xAxis = view.axis(chosen.over || "order");
        const strip = 16 * kinds.length;
        const box = { left: 58, right: width - 14, top: 28, bottom: height - 40 - strip };
        const sx = scaleOf(xAxis, box.left, box.right, width / 90);
        const sy = scaleOf(time, box.bottom, box.top, 5);
        frame(context, colours, { ...box, bottom: box.bottom + strip }, sx, sy, xAxis.title, `${time.title}, logarithmic`);
        const [px, py] = [placesOf(xAxis, sx), placesOf(time, sy)];
        const rowOf = new Map(kinds.map(([, place], at) => [place, box.bottom + 10 + 16 * at]));
        for (let row = 0; row < view.count; row++) if (Number.isNaN(py[row])) py[row] = rowOf.get(view.columns.status[row]) ?? NaN;
        drawPoints(context, px, py, (row) => view.bins[row], colours.bins, colours);
        context.fillStyle = colours.fail;
        for (const [value, place] of kinds) {
          context.textAlign = "right";
          const said = fit(context, words(value), 120);
          context.save();
          context.fillStyle = colours.card;
          context.globalAlpha = 0.85;
          context.fillRect(box.right - context.measureText(said).width - 4, rowOf.get(place) - 8, context.measureText(said).width + 6, 16);
          context.restore();
          context.fillText(said, box.right, rowOf.get(place));
          context.textAlign = "left";
        }
        context.strokeStyle = colours.strong;
        context.lineWidth = 2;
        context.beginPath();
        for (let row = 0, above = NaN; row < view.count; row++) {
          if (best[row] === Infinity || (best[row] === above && row < view.count - 1)) continue;
          const y = sy.at(best[row]);
          if (Number.isNaN(above)) context.moveTo(px[row], y);
          else {
            context.lineTo(px[row], sy.at(above));
            context.lineTo(px[row], y);
          }
          above = best[row];
        }
        context.stroke();
        if (view.best !== null && view.selected[view.best]) markBest(context, colours, box, px[view.best], py[view.best]);
        return pointMarks(px, py, brushed([xAxis, time], [sx, sy]));
      },
      caption: () => {
        const round = hasLastRound() ? " Trials of the last round are at their time in it." : "";
        const below = hasLastRound() && least < view.bestTime
          ? ` The line ends below the best, ${number(view.bestTime)} ms in the last round, because a time of the search was lower.` : "";
        const steps = view.timed.filter((row) => view.time[row] === best[row] && (row === 0 || best[row] < best[row - 1]));
        const last = Math.max(0, ...steps);
        return `The line is the best so far: ${whole(steps.length)} improvements, the last at evaluation ${whole(last + 1)} of ${whole(view.count)}.${round}${below} Drag to select a range.`;
      },
      rows: () => {
        const rows = [];
        for (let row = 0; row < view.count; row++)
          if (best[row] < Infinity && (row === 0 || best[row] < best[row - 1])) rows.push([row + 1, best[row], configText(row)]);
        return [["evaluation", "best so far (ms)", "configuration"], rows];
      },
    });
    addCosts(grid);
    addFailures(grid);
  }

  const hasLastRound = () => view.columns.final.some(Boolean);

  /** The figure of the headline, beside its ring. */
  function markBest(context, colours, box, x, y) {
    const said = `best${hasLastRound() ? ", last round" : ""}: ${number(view.bestTime)} ms`;
    const width = context.measureText(said).width;
    const left = x + 12 + width > box.right ? x - 12 - width : x + 12;
    context.fillStyle = colours.card;
    context.globalAlpha = 0.85;
    context.fillRect(left - 3, y - 8, width + 6, 16);
    context.globalAlpha = 1;
    context.fillStyle = colours.strong;
    context.fillText(said, left, y);
  }

  function addCosts(grid) {
    const { cost_s: cost, compile_ms: compile, status } = view.columns;
    if (!cost && !compile) return;
    const sums = () => {
      const parts = new Map([["compiling", 0]]);
      for (let row = 0; row < view.count; row++) {
        if (!view.selected[row]) continue;
        const compiled = compile ? (compile[row] || 0) / 1e3 : 0;
        const name = view.statuses[status[row]] === "ok" ? "verifying and timing" : `failed: ${words(view.statuses[status[row]])}`;
        parts.set("compiling", parts.get("compiling") + compiled);
        parts.set(name, (parts.get(name) || 0) + Math.max(0, ((cost && cost[row]) || 0) - compiled));
      }
      const total = [...parts.values()].reduce((sum, one) => sum + one, 0) || 1;
      return [...parts].filter(([, sum]) => sum > 0).map(([label, value]) => ({ label, value, text: `${number(value, 3)} s, ${percent(value / total)}`, isStrong: label.startsWith("failed") }));
    };
    addChart(grid, {
      id: "costs", title: "Where the time went", height: () => barHeight(sums().length),
      draw: (context, width, height, colours) => drawBars(context, width, height, colours, sums(), { unit: "seconds, summed over trials" }),
      caption: () => "Compilers work ahead of the device and beside each other, so the sum exceeds the time that passed.",
      rows: () => [["part", "seconds"], sums().map((bar) => [bar.label, bar.value])],
    });
  }

  /** For each way to fail the value that most failures share and that most often fails so. */
  function addFailures(grid) {
    const kinds = view.status.values.map((value, place) => [value, place]).filter(([value]) => value !== "ok");
    if (!kinds.length) {
      if (view.showCommand) grid.append(el("div", { class: "panel" }, el("h3", { text: "Failures" }), el("p", { text: "No trial failed." })));
      return;
    }
    const rows = kinds.map(([value, place]) => {
      const failing = [...view.columns.status.keys()].filter((row) => view.columns.status[row] === place);
      const rate = failing.length / view.count;
      let said = ["no value in particular", 0];
      for (const axis of view.varying) {
        const [all, bad] = [new Int32Array(axis.values.length), new Int32Array(axis.values.length)];
        for (let row = 0; row < view.count; row++) if (axis.data[row] >= 0) all[axis.data[row]]++;
        for (const row of failing) if (axis.data[row] >= 0) bad[axis.data[row]]++;
        axis.values.forEach((one, at) => {
          const often = all[at] ? bad[at] / all[at] : 0;
          const score = often > 1.5 * rate ? (often - rate) * (bad[at] / failing.length) : 0;
          if (score > said[1]) said = [`${axis.title}=${one}: ${whole(bad[at])} of its ${whole(all[at])} trials`, score];
        });
      }
      const details = new Map();
      for (const row of failing) {
        const first = view.details[view.columns.detail[row]].split("\n")[0];
        details.set(first, (details.get(first) || 0) + 1);
      }
      const [common] = [...details].sort((a, b) => b[1] - a[1]);
      return { value, place, count: failing.length, said: said[0], detail: common ? common[0] : "" };
    });
    const body = rows.map((row) => el("tr", {},
      el("td", {}, el("button", { type: "button", text: words(row.value), title: "Show only these", onclick: () => { allow(view.status, [row.place]); applyFilters(); } })),
      el("td", { class: "number", text: whole(row.count) }), el("td", { text: short(row.said, 160) }), el("td", { text: short(row.detail, 200) })));
    const head = el("tr", {}, ...["how", "trials", "most often with", "most frequent reason"].map((title) => el("th", { scope: "col", text: title })));
    grid.append(el("div", { class: "panel", id: "failures" }, el("h3", { text: "Failures" }),
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Failures" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)))));
  }

  function addSpace() {
    const grid = section("space", "Space");
    if (view.varying.length) addParallel(grid);
    const options = view.axes.filter((axis) => !axis.isCategory || view.varying.includes(axis) || axis === view.limit).map((axis) => [axis.id, axis.title]);
    const byImportance = important();
    const first = byImportance[0] || view.varying[0] || view.axis("order");
    const time = view.axis("time_ms");
    if (time) {
      addChart(grid, {
        id: "scatter", title: "Any two quantities", height: 360,
        choices: [{ name: "x", label: "x", options, value: first.id }, { name: "y", label: "y", options, value: time.id }],
        draw: (context, width, height, colours, { x, y }) => drawScatter(context, width, height, colours, view.axis(x), view.axis(y)),
        caption: ({ x, y }) => `${view.axis(y).title} against ${view.axis(x).title}; ${theme === "dark" ? "brighter" : "darker"} is faster. Drag to select, click to open a trial.`,
        rows: ({ x, y }) => pointRows(view.axis(x), view.axis(y)),
      });
    }
    if (view.varying.length > 1) addHeat(grid, byImportance);
    addNeighbours(grid);
  }

  function addParallel(grid) {
    const time = view.axis("time_ms");
    const axes = [...view.varying, ...(time ? [time] : [])];
    const range = time ? extent(time.data, true) : [1, 1];
    const level = (axis, row) => {
      if (axis.isCategory) return axis.data[row];
      const value = axis.data[row];
      if (!(value > 0)) return LEVELS; // failed
      const share = range[1] > range[0] ? Math.log(value / range[0]) / Math.log(range[1] / range[0]) : 0;
      return Math.min(LEVELS - 1, Math.floor(share * LEVELS));
    };
    const levels = axes.map((axis) => Int16Array.from({ length: view.count }, (_, row) => level(axis, row)));
    const sizes = axes.map((axis) => (axis.isCategory ? axis.values.length : LEVELS + 1));
    addChart(grid, {
      id: "parallel", title: "All parameters", isWide: true, height: 380, minWidth: () => axes.length * 84,
      draw: (context, width, height, colours) => {
        const box = { left: 46, right: width - 64, top: 46, bottom: height - 20 };
        const x = (at) => (axes.length > 1 ? box.left + ((box.right - box.left) * at) / (axes.length - 1) : (box.left + box.right) / 2);
        const y = (at, place) => {
          const axis = axes[at];
          if (axis.isCategory) return box.bottom - ((place + 0.5) / sizes[at]) * (box.bottom - box.top);
          return place === LEVELS ? box.top + 4 : box.bottom - ((place + 0.5) / LEVELS) * (box.bottom - box.top - 26);
        };
        for (let at = 0; at + 1 < axes.length; at++) drawLinks(context, colours, at, x, y);
        const marks = [];
        axes.forEach((axis, at) => {
          context.strokeStyle = colours.soft;
          context.lineWidth = 1;
          line(context, x(at), box.top, x(at), box.bottom);
          context.fillStyle = colours.ink;
          context.textAlign = "center";
          context.font = "600 12px system-ui, sans-serif";
          context.fillText(fit(context, plain(axis.title), Math.max(60, (box.right - box.left) / axes.length - 6)), x(at), at % 2 && axes.length > 8 ? 12 : 28);
          context.font = "12px system-ui, sans-serif";
          const filter = filters.get(axis.id);
          const labels = axis.isCategory ? axis.values.map((value, place) => [place, value])
            : [[0, number(range[0], 3)], [LEVELS - 1, number(range[1], 3)], ...(view.failed.length ? [[LEVELS, "failed"]] : [])];
          for (const [place, value] of labels) {
            const said = fit(context, plain(value), 78);
            const wide = context.measureText(said).width;
            context.globalAlpha = 0.82;
            context.fillStyle = colours.card;
            context.fillRect(x(at) - wide / 2 - 3, y(at, place) - 8, wide + 6, 16);
            context.globalAlpha = 1;
            context.fillStyle = axis.isCategory && filter && filter.set && !filter.set[place] ? colours.soft : place === LEVELS ? colours.fail : colours.ink;
            if (filter && filter.set && filter.set[place]) context.font = "700 12px system-ui, sans-serif";
            context.fillText(said, x(at), y(at, place));
            context.font = "12px system-ui, sans-serif";
            if (axis.isCategory) marks.push({ left: x(at) - 40, top: y(at, place) - 9, width: 80, height: 18, x: x(at), y: y(at, place),
              tip: `${axis.title} = ${value}\nClick to show only these`, act: () => toggle(axis, place) });
          }
          context.textAlign = "left";
        });
        return { list: () => marks, find: nearest(marks), brush: (x0, y0, x1, y1) => {
          const hit = axes.filter((_, at) => x(at) >= x0 - 24 && x(at) <= x1 + 24);
          for (const axis of hit) {
            const at = axes.indexOf(axis);
            const places = Array.from({ length: sizes[at] }, (_, place) => place).filter((place) => y(at, place) >= y0 - 2 && y(at, place) <= y1 + 2);
            if (axis.isCategory && places.length) allow(axis, places);
            const times = places.filter((place) => place < LEVELS);
            const limit = (place) => range[0] * (range[1] / range[0]) ** (place / LEVELS);
            if (!axis.isCategory && times.length) restrict(axis, limit(Math.min(...times)) * 0.9999, limit(Math.max(...times) + 1) * 1.0001);
          }
          if (hit.length) applyFilters();
        } };
      },
      caption: () => `Each line joins two values that some trial has: its colour is their mean rank (${theme === "dark" ? "brighter" : "darker"} is faster), its width their number. The thick line is the best. Drag along an axis or click values to filter.`,
      rows: () => {
        const rows = view.varying.flatMap((axis) => statsOf(axis).map((one) => [axis.title, one.value, one.count, one.failed, one.best, one.median]));
        return [["parameter", "value", "trials", "failed", "best (ms)", "median (ms)"], rows];
      },
    });

    /** The trials' lines between two axes, one for each pair of values: there are few pairs, and many trials. */
    function drawLinks(context, colours, at, x, y) {
      const [one, other, width] = [levels[at], levels[at + 1], sizes[at + 1]];
      const cells = sizes[at] * width;
      const counts = new Int32Array(cells);
      const failures = new Int32Array(cells);
      const ranks = new Float64Array(cells);
      const hidden = new Uint8Array(cells);
      for (let row = 0; row < view.count; row++) {
        if (one[row] < 0 || other[row] < 0) continue;
        const cell = one[row] * width + other[row];
        if (!view.selected[row]) hidden[cell] = 1;
        else {
          counts[cell]++;
          if (view.bins[row] === FAILED) failures[cell]++;
          else ranks[cell] += view.bins[row];
        }
      }
      let most = 1;
      for (const count of counts) if (count > most) most = count;
      const link = (cell) => {
        const [x0, x1] = [x(at), x(at + 1)];
        const [y0, y1] = [y(at, Math.floor(cell / width)), y(at + 1, cell % width)];
        context.moveTo(x0, y0);
        context.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
      };
      context.strokeStyle = colours.faint;
      context.lineWidth = 0.6;
      context.beginPath();
      hidden.forEach((is, cell) => { if (is && !counts[cell]) link(cell); });
      context.stroke();
      const mean = (cell) => (failures[cell] === counts[cell] ? FAILED : ranks[cell] / (counts[cell] - failures[cell]));
      const present = [...counts.keys()].filter((cell) => counts[cell]).sort((a, b) => mean(b) - mean(a));
      const means = present.map(mean).filter((one) => one !== FAILED);
      const [low, high] = [means[means.length - 1], means[0]];
      for (const cell of present) {
        const isFailed = failures[cell] === counts[cell];
        context.strokeStyle = isFailed ? colours.fail : colours.bins[Math.round(((mean(cell) - low) / (high - low || 1)) * (BINS - 1))];
        context.lineWidth = 0.7 + 4 * Math.sqrt(counts[cell] / most);
        context.setLineDash(isFailed ? [4, 3] : []);
        context.beginPath();
        link(cell);
        context.stroke();
      }
      context.setLineDash([]);
      if (view.best !== null && view.selected[view.best] && one[view.best] >= 0 && other[view.best] >= 0) {
        context.strokeStyle = colours.strong;
        context.lineWidth = 3;
        context.beginPath();
        link(one[view.best] * width + other[view.best]);
        context.stroke();
      }
    }
  }

  const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

  /** Per value of a parameter, over the selected trials. */
  function statsOf(axis) {
    const found = axis.values.map((value) => ({ value, count: 0, failed: 0, times: [] }));
    for (const row of view.timed) if (view.selected[row] && axis.data[row] >= 0) found[axis.data[row]].times.push(view.time[row]);
    for (const row of view.failed) if (view.selected[row] && axis.data[row] >= 0) found[axis.data[row]].failed++;
    return found.map((one, place) => ({ ...one, place, count: one.times.length + one.failed, best: one.times.length ? one.times[0] : NaN,
      median: one.times.length ? quantile(one.times, 0.5) : NaN, low: quantile(one.times, 0.1), high: quantile(one.times, 0.9) })).filter((one) => one.count);
  }

  const STATISTICS = [["best", "best time"], ["median", "median time"], ["count", "trials"], ["failed", "share of failures"]];

  function addHeat(grid, byImportance) {
    const options = view.varying.map((axis) => [axis.id, axis.title]);
    const [one, other] = [byImportance[0] || view.varying[0], byImportance[1] || view.varying[1]];
    const cells = ({ x, y }) => {
      const [a, b] = [view.axis(x), view.axis(y)];
      const found = new Map();
      const cell = (row) => {
        const key = a.data[row] * b.values.length + b.data[row];
        if (a.data[row] < 0 || b.data[row] < 0) return null;
        if (!found.has(key)) found.set(key, { a: a.data[row], b: b.data[row], times: [], failures: 0 });
        return found.get(key);
      };
      for (const row of view.timed) if (view.selected[row]) cell(row)?.times.push(view.time[row]);
      for (const row of view.failed) if (view.selected[row]) { const hit = cell(row); if (hit) hit.failures++; }
      return [...found.values()].map((hit) => ({ ...hit, count: hit.times.length + hit.failures, best: hit.times[0],
        median: quantile(hit.times, 0.5), failed: hit.failures / (hit.times.length + hit.failures) }));
    };
    view.heat = addChart(grid, {
      id: "heat", title: "Heat map of two parameters",
      height: (width, { y }) => Math.max(220, 60 + 30 * view.axis(y).values.length),
      choices: [{ name: "x", label: "x", options, value: one.id }, { name: "y", label: "y", options, value: other.id },
        { name: "show", label: "show", options: STATISTICS, value: "best" }],
      draw: (context, width, height, colours, chosen) => {
        const [a, b] = [view.axis(chosen.x), view.axis(chosen.y)];
        const left = Math.min(width * 0.35, 20 + Math.max(...b.values.map((value) => context.measureText(short(plain(value), 24)).width)));
        const box = { left, right: width - 10, top: 26, bottom: height - 40 };
        const [sx, sy] = [categoryScale(a, box.left, box.right), categoryScale(b, box.bottom, box.top)];
        const found = cells(chosen);
        const known = found.map((cell) => cell[chosen.show]).filter((value) => value !== undefined);
        const [low, high] = [Math.min(...known), Math.max(...known)];
        const isTime = chosen.show === "best" || chosen.show === "median";
        context.fillStyle = colours.soft;
        context.textAlign = "right";
        for (const [place, said] of sy.ticks) context.fillText(fit(context, said, left - 8), left - 6, sy.at(place));
        context.textAlign = "center";
        for (const [place, said] of sx.ticks) context.fillText(fit(context, said, Math.abs(sx.step) - 3), sx.at(place), box.bottom + 12);
        context.fillText(short(plain(a.title), 60), (box.left + box.right) / 2, box.bottom + 28);
        context.textAlign = "left";
        context.fillText(short(plain(b.title), 60), 4, 12);
        const marks = found.map((cell) => {
          const value = cell[chosen.show];
          const [cx, cy] = [sx.at(cell.a), sy.at(cell.b)];
          const [wide, tall] = [Math.abs(sx.step) - 2, Math.abs(sy.step) - 2];
          const share = value === undefined ? 0 : isTime ? (high > low ? Math.log(value / low) / Math.log(high / low) : 0) : high > low ? 1 - (value - low) / (high - low) : 0;
          const colour = value === undefined ? null : shade(share);
          context.fillStyle = colour || colours.card;
          context.fillRect(cx - wide / 2, cy - tall / 2, wide, tall);
          if (!colour) {
            context.strokeStyle = colours.fail;
            context.lineWidth = 1.5;
            context.beginPath();
            cross(context, cx, cy, 5);
            context.stroke();
          } else {
            const said = chosen.show === "failed" ? percent(value) : number(value, 3);
            context.fillStyle = inkOn(colour);
            context.textAlign = "center";
            if (context.measureText(said).width < wide - 2 && tall > 12) context.fillText(said, cx, cy);
            context.textAlign = "left";
          }
          return { left: cx - wide / 2, top: cy - tall / 2, width: wide, height: tall, x: cx, y: cy,
            tip: `${a.title} = ${a.values[cell.a]}, ${b.title} = ${b.values[cell.b]}\nbest ${number(cell.best)} ms, median ${number(cell.median)} ms\n${whole(cell.count)} trials, ${whole(cell.failures)} failed`,
            act: () => { allow(a, [cell.a]); allow(b, [cell.b]); applyFilters(); } };
        });
        return boxes(marks);
      },
      caption: () => "An empty cell was not tried, a cross only failed. Click a cell to show its trials only.",
      rows: (chosen) => [[view.axis(chosen.x).title, view.axis(chosen.y).title, "best (ms)", "median (ms)", "trials", "failed"],
        cells(chosen).map((cell) => [view.axis(chosen.x).values[cell.a], view.axis(chosen.y).values[cell.b], cell.best ?? NaN, cell.median ?? NaN, cell.count, cell.failures])],
    });
  }

  function addNeighbours(grid) {
    if (view.best === null) return;
    const best = view.best;
    const found = [];
    for (let row = 0; row < view.count; row++) {
      let [changed, count] = [null, 0];
      for (const axis of view.parameters) if (axis.data[row] !== axis.data[best] && ++count <= 1) changed = axis;
      if (count === 1) found.push({ row, axis: changed, factor: view.time[row] / view.bestTime });
    }
    const possible = view.varying.reduce((sum, axis) => sum + new Set(axis.data).size - 1, 0);
    found.sort((a, b) => view.parameters.indexOf(a.axis) - view.parameters.indexOf(b.axis) || a.axis.data[a.row] - b.axis.data[b.row]);
    if (!found.length) {
      grid.append(el("div", { class: "panel" }, el("h3", { text: "Neighbourhood of the best" }),
        el("p", { text: "No trial differs from the best in one parameter only." })));
      return;
    }
    const bars = found.map(({ row, axis, factor }) => ({
      label: `${axis.title}: ${text(axis, best)} → ${text(axis, row)}`, value: factor, isFailed: Number.isNaN(factor),
      text: Number.isNaN(factor) ? outcome(row) : `${number(factor, 3)} x`, tip: trialTip(row), act: () => openTrial(row),
      isStrong: factor < 1,
    }));
    addChart(grid, {
      id: "neighbours", title: "Neighbourhood of the best", height: () => barHeight(bars.length),
      draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: "times the best time" }),
      caption: () => `What each single change costs: ${whole(found.length)} of ${whole(possible)} single changes were tried; some of the others are not valid.`,
      rows: () => [["change", "times the best"], bars.map((bar) => [bar.label, Number.isNaN(bar.value) ? bar.text : bar.value])],
    });
  }

  /** Varying parameters, the most important first. */
  function important() {
    const names = (view.importance.single || []).map(([name]) => name);
    return names.map((name) => view.varying.find((axis) => axis.title === name)).filter(Boolean);
  }

  function addImportance() {
    const grid = section("importance", "What matters");
    const { importance } = view;
    if (importance.why) grid.append(el("div", { class: "panel" }, el("h3", { text: "Importance" }), el("p", { text: importance.why })));
    else {
      const pairs = importance.pairs.filter(([, , share]) => share >= 0.01).slice(0, 8);
      const axisOf = (name) => view.varying.find((axis) => axis.title === name);
      const bars = [
        ...importance.single.map(([name, share]) => ({ label: name, value: share, text: percent(share), isStrong: share === importance.single[0][1],
          act: () => { const axis = axisOf(name); if (axis && view.effects) choose(view.effects, { of: axis.id }); } })),
        ...pairs.map(([one, other, share]) => ({ label: `${one} × ${other}`, value: share, text: percent(share),
          act: () => { if (view.heat && axisOf(one) && axisOf(other)) { choose(view.heat, { x: axisOf(one).id, y: axisOf(other).id }); view.heat.figure.scrollIntoView(); } } })),
      ];
      addChart(grid, {
        id: "importance-chart", title: "Share of the variance of log time", height: () => barHeight(bars.length),
        draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: "share" }),
        caption: () => {
          const poor = importance.fit < 0.5 ? " That is poor: read nothing into these shares." : "";
          return `Functional ANOVA of a random forest, from ${whole(importance.trials)} trials; it explains ${percent(Math.max(0, importance.fit))} of the variance of trials that it has not seen.${poor}`;
        },
        rows: () => [["parameter or pair", "share"], bars.map((bar) => [bar.label, bar.text])],
      });
    }
    if (view.varying.length && view.timed.length) {
      const start = important()[0] || view.varying[0];
      const bars = ({ of }) => statsOf(view.axis(of)).map((one) => ({
        label: one.value, value: one.median, range: one.times.length ? [one.low, one.high] : undefined, dot: one.best,
        text: one.times.length ? `${number(one.best, 3)} ms` : "all failed", isFailed: !one.times.length,
        tip: `${view.axis(of).title} = ${one.value}\nbest ${number(one.best)} ms, median ${number(one.median)} ms\n${whole(one.count)} trials, ${whole(one.failed)} failed`,
        act: () => toggle(view.axis(of), one.place),
      }));
      view.effects = addChart(grid, {
        id: "effects", title: "Effect of one parameter", height: (width, chosen) => barHeight(bars(chosen).length),
        choices: [{ name: "of", label: "parameter", options: view.varying.map((axis) => [axis.id, axis.title]), value: start.id }],
        draw: (context, width, height, colours, chosen) => drawBars(context, width, height, colours, bars(chosen), { unit: "time (ms), logarithmic", isLog: true }),
        caption: () => "Dot: the best trial with this value. Mark: the median. Band: 10% to 90% of its trials.",
        rows: ({ of }) => [["value", "best (ms)", "10% (ms)", "median (ms)", "90% (ms)", "trials", "failed"],
          statsOf(view.axis(of)).map((one) => [one.value, one.best, one.low ?? NaN, one.median, one.high ?? NaN, one.count, one.failed])],
      });
      addUseless(grid);
    }
  }

  /** Values that no configuration near the best has. */
  function addUseless(grid) {
    const rows = [];
    for (const axis of view.varying) {
      const [best, tried, works] = [new Float64Array(axis.values.length).fill(Infinity), new Int32Array(axis.values.length), new Int32Array(axis.values.length)];
      for (let row = 0; row < view.count; row++) {
        const place = axis.data[row];
        if (place < 0) continue;
        tried[place]++;
        if (view.time[row] > 0) works[place]++;
        if (view.time[row] < best[place]) best[place] = view.time[row];
      }
      axis.values.forEach((value, place) => {
        if (tried[place] && !(best[place] <= NEAR * view.bestTime)) rows.push([axis.title, value, tried[place], works[place], best[place] === Infinity ? NaN : best[place] / view.bestTime]);
      });
    }
    rows.sort((a, b) => (Number.isNaN(b[4]) ? 1e9 : b[4]) - (Number.isNaN(a[4]) ? 1e9 : a[4]));
    const what = rows.length ? tableOf(["parameter", "value", "tried", "worked", "its best over the best"], rows)
      : el("p", { text: "Every value is in a configuration within 10% of the best." });
    grid.append(el("div", { class: "panel" }, el("h3", { text: "Values that no configuration within 10% of the best has" }), what));
  }

  function addResources() {
    const known = ["occupancy", "registers", "spill_bytes", "shared_bytes"].filter((id) => view.axis(id));
    const time = view.axis("time_ms");
    const hasRate = view.axis("time_ms") && (view.columns.bytes || view.columns.flops);
    if (!time || (!known.length && !hasRate)) return;
    const grid = section("resources", "Resources and rates");
    if (known.length) addChart(grid, {
      id: "resources-chart", title: "What the binary takes, and the time", height: 340,
      choices: [{ name: "x", label: "x", options: known.map((id) => [id, view.axis(id).title]), value: known[0] }],
      draw: (context, width, height, colours, { x }) => drawScatter(context, width, height, colours, view.axis(x), time, view.limit),
      caption: () => (view.limit ? "Colour: what admits no more blocks on a multiprocessor." : "Colour: the time; the launch or the architecture is not known, so no occupancy is."),
      rows: ({ x }) => pointRows(view.axis(x), time),
    });
    if (hasRate) addRoofline(grid, time);
  }

  /** Rate over intensity with the memory's ceiling; without operations, the rate of the memory alone. */
  function addRoofline(grid, time) {
    const { bytes, flops } = view.columns;
    const rate = Float64Array.from({ length: view.count }, (_, row) => ((flops || bytes)[row] / view.time[row]) * 1e-6);
    const yAxis = { id: "rate", title: flops ? "GFLOP/s" : "GB/s", isLog: true, data: rate };
    const xAxis = flops && bytes
      ? { id: "intensity", title: "operations per byte", isLog: true, data: Float64Array.from({ length: view.count }, (_, row) => flops[row] / bytes[row]) }
      : view.axis("order");
    const roof = bytes && view.bandwidth ? view.bandwidth * 1e-9 : null;
    addChart(grid, {
      id: "roofline", title: "Roofline", height: 340,
      draw: (context, width, height, colours) => {
        const box = { left: 58, right: width - 14, top: 38, bottom: height - 40 };
        let [low, high] = extent(xAxis.data, xAxis.isLog);
        if (flops && bytes) [low, high] = [low / 8, high * 8];
        const sx = numberScale(low, high, box.left, box.right, Boolean(flops && bytes));
        const [least, most] = extent(rate, true);
        const ceiling = roof ? (flops ? roof * high : roof) : most;
        const sy = numberScale(Math.min(least, roof && flops ? roof * low : least) / 1.2, Math.max(most, ceiling) * 1.2, box.bottom, box.top, true);
        frame(context, colours, box, sx, sy, xAxis.title, `${yAxis.title}, logarithmic`);
        if (roof) {
          context.strokeStyle = colours.ink;
          context.lineWidth = 2;
          line(context, sx.at(low), sy.at(flops ? roof * low : roof), sx.at(high), sy.at(flops ? roof * high : roof));
          context.fillStyle = colours.ink;
          context.textAlign = "right";
          context.fillText(`memory: ${number(roof)} GB/s`, box.right, box.top - 12);
          context.textAlign = "left";
        }
        const [px, py] = [placesOf(xAxis, sx), placesOf(yAxis, sy)];
        drawPoints(context, px, py, (row) => view.bins[row], colours.bins, colours);
        const back = (y) => ((flops || bytes)[view.best ?? 0] / sy.invert(y)) * 1e-6;
        return pointMarks(px, py, (x0, y0, x1, y1) => { restrict(time, back(y0), back(y1)); applyFilters(); });
      },
      caption: () => {
        const share = roof && view.best !== null ? (bytes[view.best] / view.bestTime) * 1e-6 / roof : null;
        const said = share === null ? "The device's bandwidth is not known here, so there is no ceiling." : `The best reaches ${percent(share)} of the memory's ceiling.`;
        return `${said} Compute ceilings are not recorded.`;
      },
      rows: () => pointRows(xAxis, yAxis),
    });
  }

  function addLadder() {
    const steps = view.landmarks.filter(({ trial }) => !Number.isNaN(view.time[trial]));
    if (!steps.length) return;
    const grid = section("ladder", "Ladder");
    const first = view.time[steps[0].trial];
    const all = [...steps.map(({ name, note, trial }) => ({ name, note, trial })), ...(view.best === null ? [] : [{ name: "tuned", note: "the best of this search", trial: view.best }])];
    const bars = all.map(({ name, trial }) => ({ label: name, value: view.time[trial], text: `${number(view.time[trial], 3)} ms, ${number(first / view.time[trial], 3)} x`,
      isStrong: name === "tuned", tip: trialTip(trial), act: () => openTrial(trial) }));
    const spread = Math.max(...bars.map((bar) => bar.value)) / Math.min(...bars.map((bar) => bar.value));
    addChart(grid, {
      id: "ladder-chart", title: "Steps of the ladder that were tried", isWide: true, height: () => barHeight(bars.length),
      draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: spread > 20 ? "time (ms), logarithmic" : "time (ms)", isLog: spread > 20 }),
      caption: () => `${whole(steps.length)} of the space's landmarks were tried. The table has the sources' own figures.`,
      rows: () => [["step", "ms", "speed-up", "what it is, and the source's figure"], all.map(({ name, note, trial }) => [name, view.time[trial], `${number(first / view.time[trial], 3)} x`, note])],
    });
  }

  function addComparison() {
    const { comparison } = data;
    if (data.searches.length < 2) return;
    const grid = section("devices", "Across GPUs");
    addSweep(grid);
    if (!comparison) {
      grid.append(panel(el("p", { text: data.notCompared })));
      return;
    }
    const { devices, matrix, flips, portable } = comparison;
    const bars = devices.map((one) => ({ label: one.name, value: one.time_ms, text: `${number(one.time_ms)} ms`, tip: `${one.name}\n${one.config}` }));
    addChart(grid, {
      id: "device-times", title: "Best time on each device", height: () => barHeight(bars.length),
      draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: "time (ms)" }),
      caption: () => comparison.problem, rows: () => [["device", "ms", "configuration"], devices.map((one) => [one.name, one.time_ms, one.config])],
    });
    const head = el("tr", {}, el("th", { scope: "col", text: "tuned on, run on:" }), ...devices.map((one) => el("th", { scope: "col", text: one.name })));
    const body = matrix.map((row, at) => el("tr", {}, el("th", { scope: "row", text: devices[at].name }), ...row.map((share) => {
      const cell = el("td", { class: "cell", text: share === null ? "–" : percent(share) });
      if (share !== null) cell.dataset.share = share;
      return cell;
    })));
    const worst = matrix.flat().filter((share) => share !== null);
    grid.append(el("div", { class: "panel", id: "matrix" }, el("h3", { text: "What a second GPU costs: share of its best speed" }),
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Portability matrix" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body))),
      el("p", { class: "soft", text: `At worst a configuration from another device reaches ${percent(Math.min(...worst))}. – means not measured. ${data.notCompared}` }),
      el("p", { text: `One configuration for all: at most ${number(portable.worst, 3)} times as slow as the best${portable.portability === null ? "" : `, portability ${percent(portable.portability)}`}.` }),
      el("p", {}, bdi(portable.config))));
    const rows = Object.entries(flips).map(([name, values]) => [name, ...values.map((value) => value ?? "–")]);
    grid.append(panel(el("h3", { text: "Parameters whose best value differs" }),
      rows.length ? tableOf(["parameter", ...devices.map((one) => one.name)], rows) : el("p", { text: "None." }),
      el("p", { class: "soft", text: comparison.agreed ? `The same everywhere: ${comparison.agreed}` : "" }),
      el("p", { text: `${comparison.portfolio.length} configuration${comparison.portfolio.length > 1 ? "s serve" : " serves"} every device within 5% of its best:` }),
      tableOf(["configuration", "for"], comparison.portfolio)));
  }

  /** Time over size, where one device has results for several sizes of one kernel. */
  function addSweep(grid) {
    const groups = new Map();
    data.searches.forEach((search) => {
      if (search.best === null) return;
      const volume = Object.values(search.sizes).reduce((product, size) => product * size, 1);
      const key = `${search.kernel} on ${search.device}${search.problem.includes(",") ? "" : ""}`;
      groups.set(key, [...(groups.get(key) || []), { volume, time: search.columns.time_ms[search.best], problem: search.problem }]);
    });
    const lines = [...groups].filter(([, points]) => new Set(points.map((point) => point.volume)).size > 1)
      .map(([name, points]) => [name, points.sort((a, b) => a.volume - b.volume)]);
    if (!lines.length) return;
    const all = lines.flatMap(([, points]) => points);
    addChart(grid, {
      id: "sweep", title: "Best time over size", height: 320,
      draw: (context, width, height, colours) => {
        const box = { left: 58, right: width - 14, top: 28, bottom: height - 40 };
        const [volumes, times] = [all.map((one) => one.volume), all.map((one) => one.time)];
        const sx = numberScale(Math.min(...volumes) / 1.2, Math.max(...volumes) * 1.2, box.left, box.right, true);
        const sy = numberScale(Math.min(...times) / 1.2, Math.max(...times) * 1.2, box.bottom, box.top, true);
        frame(context, colours, box, sx, sy, "product of the sizes", "time (ms), logarithmic");
        const marks = [];
        lines.forEach(([name, points], at) => {
          context.strokeStyle = context.fillStyle = colours.category[at % colours.category.length];
          context.lineWidth = 2;
          context.beginPath();
          points.forEach((point, place) => context[place ? "lineTo" : "moveTo"](sx.at(point.volume), sy.at(point.time)));
          context.stroke();
          for (const point of points) {
            const [x, y] = [sx.at(point.volume), sy.at(point.time)];
            context.fillRect(x - 4, y - 4, 8, 8);
            marks.push({ x, y, tip: `${name}\n${point.problem}: ${number(point.time)} ms` });
          }
        });
        return boxes(marks);
      },
      caption: () => lines.map(([name]) => name).join("; "),
      rows: () => [["kernel and device", "problem", "ms"], lines.flatMap(([name, points]) => points.map((point) => [name, point.problem, point.time]))],
    });
  }

  function colourMatrix() {
    for (const cell of document.querySelectorAll("td[data-share]")) {
      const colour = shade(1 - Number(cell.dataset.share));
      cell.style.background = colour;
      cell.style.color = inkOn(colour);
    }
  }

  // ---------------------------------------------------------------------------------------- trials, one and all

  const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

  function openTrial(row) {
    showTip(null);
    const values = view.parameters.filter((axis) => axis.data[row] >= 0);
    const condition = values.map((axis) => {
      const value = axis.raw[axis.data[row]];
      return `${axis.title} == ${typeof value === "string" ? JSON.stringify(value) : shown(value)}`;
    }).join(" and ");
    const settings = values.map((axis) => `${axis.title}=${shown(axis.raw[axis.data[row]])}`).join(",");
    const flags = [...view.constants, ...values.map((axis) => `-D${axis.title}=${axis.macros[axis.data[row]]}`)];
    const config = Object.fromEntries(values.map((axis) => [axis.title, axis.raw[axis.data[row]]]));
    const facts = view.measures.filter((axis) => !Number.isNaN(axis.data[row]) && axis.id !== "order").map((axis) => [axis.title, number(axis.data[row], 6)]);
    if (view.limit && view.limit.data[row] >= 0) facts.push([view.limit.title, text(view.limit, row)]);
    if (view.bestTime && view.time[row]) facts.splice(1, 0, ["times the best", number(view.time[row] / view.bestTime)]);
    const detail = view.details[view.columns.detail[row]];
    $("trial-title").textContent = `Trial ${row + 1}: ${outcome(row)}`;
    $("trial-body").replaceChildren(
      ...(detail ? [el("h3", { text: "Detail" }), el("pre", { text: detail })] : []),
      tableOf(["quantity", "value"], facts),
      ...(view.runCommand ? copyable("Command that runs it", `${view.runCommand} ${quoted(settings)}`) : []),
      ...(view.showCommand ? copyable("Command that shows it", `autotune show ${quoted(view.showCommand)} --where ${quoted(condition)}`) : []),
      ...copyable("Macros, as compiler options", flags.map((flag) => (/^[\w=.-]+$/.test(flag) ? flag : quoted(flag))).join(" ")),
      ...copyable("Configuration, as JSON", JSON.stringify(config)),
    );
    $("trial").showModal();
    $("trial-body").scrollTop = 0;
  }

  function copyable(title, content) {
    const code = el("pre", { text: content });
    const button = el("button", { type: "button", text: "Copy", "aria-label": `Copy: ${title}`, onclick: async () => {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      try {
        await navigator.clipboard.writeText(content);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Selected: copy with Ctrl+C";
      }
    } });
    return [el("h3", {}, `${title} `, button), code];
  }

  const table = {
    sortBy: "time_ms", isDescending: false, order: null, page: 0,
    columns() {
      const measured = ["time_ms", "energy_j", "registers", "spill_bytes", "shared_bytes", "occupancy", "compile_ms"].map((id) => view.axis(id)).filter(Boolean);
      return [view.axis("order"), ...measured.slice(0, 1), view.status, ...view.parameters, ...measured.slice(1)];
    },
    sorted() {
      if (this.order) return this.order;
      const column = view.axis(this.sortBy).data;
      const sign = this.isDescending ? -1 : 1;
      this.order = Array.from({ length: view.count }, (_, row) => row).sort((a, b) => {
        const [one, other] = [column[a], column[b]];
        if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other) || a - b;
        return sign * (one - other) || a - b;
      });
      return this.order;
    },
    rows() {
      return this.sorted().filter((row) => view.selected[row]);
    },
    build() {
      const grid = section("trials", "Trials");
      this.order = null;
      this.sortBy = view.axis("time_ms") ? "time_ms" : "order";
      this.isDescending = false;
      this.head = el("tr");
      this.body = el("tbody");
      this.said = el("span", { class: "soft" });
      this.back = el("button", { type: "button", text: "Previous", onclick: () => this.show(this.page - 1) });
      this.next = el("button", { type: "button", text: "Next", id: "next-page", onclick: () => this.show(this.page + 1) });
      grid.append(panel(
        el("div", { class: "bar" }, el("div", { class: "choices" }, this.back, this.next, this.said),
          el("button", { type: "button", id: "csv", text: "Download as CSV", onclick: () => this.download() })),
        el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Trials" },
          el("table", { id: "trial-table" }, el("thead", {}, this.head), this.body))));
      this.show(0);
    },
    showHead() {
      this.head.replaceChildren(...this.columns().map((axis) => {
        const isSorted = axis.id === this.sortBy;
        const mark = isSorted ? (this.isDescending ? " ↓" : " ↑") : "";
        return el("th", { scope: "col", "aria-sort": isSorted ? (this.isDescending ? "descending" : "ascending") : "none" },
          el("button", { type: "button", onclick: () => this.sort(axis) }, bdi(short(axis.title, 40)), mark));
      }), el("th", { scope: "col", text: "detail" }));
    },
    sort(axis) {
      this.isDescending = axis.id === this.sortBy && !this.isDescending;
      this.sortBy = axis.id;
      this.order = null;
      this.show(0);
      const again = [...this.head.querySelectorAll("button")][this.columns().indexOf(axis)];
      if (again) again.focus();
    },
    show(page) {
      const rows = this.rows();
      this.page = Math.max(0, Math.min(page, Math.ceil(rows.length / PAGE) - 1));
      const from = this.page * PAGE;
      const columns = this.columns();
      this.showHead();
      this.body.replaceChildren(...rows.slice(from, from + PAGE).map((row) => {
        const cells = columns.map((axis) => {
          if (axis.id === "order") return el("td", {}, el("button", { type: "button", text: String(row + 1), "aria-label": `Open trial ${row + 1}`, onclick: () => openTrial(row) }));
          const said = axis === view.status ? words(text(axis, row)) : short(text(axis, row), 80);
          return el("td", { class: axis.isCategory ? undefined : "number", text: said });
        });
        return el("tr", {}, ...cells, el("td", { text: short(view.details[view.columns.detail[row]].split("\n")[0], 120) }));
      }));
      this.said.textContent = rows.length ? `${whole(from + 1)} to ${whole(Math.min(from + PAGE, rows.length))} of ${whole(rows.length)}` : "No trial passes the filters.";
      this.back.disabled = this.page === 0;
      this.next.disabled = from + PAGE >= rows.length;
    },
    csv() {
      // A spreadsheet takes a text that begins so for a formula.
      const cell = (value) => {
        const said = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
        return /[",\r\n]/.test(said) ? `"${said.replaceAll('"', '""')}"` : said;
      };
      const columns = this.columns();
      const lines = [[...columns.map((axis) => axis.title), "detail"]];
      for (const row of this.rows())
        lines.push([...columns.map((axis) => (axis.isCategory ? (axis.data[row] < 0 ? "" : axis.raw ? axis.raw[axis.data[row]] : axis.values[axis.data[row]])
          : Number.isNaN(axis.data[row]) ? "" : axis.data[row])), view.details[view.columns.detail[row]]]);
      return lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
    },
    download() {
      const link = el("a", { download: "trials.csv", href: URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" })) });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    },
  };

  // ------------------------------------------------------------------------------------------------- the page

  function open(place) {
    view = prepare(data.searches[place]);
    charts.forEach((chart) => seen.unobserve(chart.canvas));
    charts = [];
    filters = new Map();
    $("main").replaceChildren();
    $("sections").replaceChildren();
    $("title").textContent = view.kernel;
    $("subtitle").replaceChildren(bdi(view.device), ...(view.problem ? [", ", bdi(view.problem)] : []), " (", bdi(view.source), ")");
    addHeadline();
    addProgress();
    addSpace();
    addImportance();
    addResources();
    addLadder();
    addComparison();
    table.build();
    fillFilterPanel();
    showFilters();
    colourMatrix();
  }

  function setTheme(name) {
    theme = name;
    document.documentElement.dataset.theme = name;
    $("theme").textContent = name === "dark" ? "Light" : "Dark";
    $("theme").setAttribute("aria-label", `Switch to ${name === "dark" ? "light" : "dark"} colours`);
    $("theme").removeAttribute("aria-pressed");
    colourMatrix();
    redraw();
  }

  document.body.append(el("div", { id: "live", class: "skip", role: "status" }));
  const search = $("search");
  data.searches.forEach((one, place) => search.append(el("option", { value: place, text: short(`${one.kernel}, ${one.device}, ${one.problem || one.source}`, 90) })));
  $("search-label").hidden = data.searches.length < 2;
  search.addEventListener("change", () => open(Number(search.value)));
  $("theme").addEventListener("click", () => setTheme(theme === "dark" ? "light" : "dark"));
  $("trial-close").addEventListener("click", () => $("trial").close());
  const wishes = matchMedia("(prefers-color-scheme: dark)");
  wishes.addEventListener("change", () => setTheme(wishes.matches ? "dark" : "light"));
  new ResizeObserver(() => redraw()).observe($("main"));
  setTheme(wishes.matches ? "dark" : "light");
  open(0);
})();
