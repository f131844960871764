// A figure with its choices, canvas, sentence and table; marks for pointer and keyboard; the brush.

let charts = [];

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
      ...options.map(([key, said]) => el("option", { value: key, text: middle(said, 60) })));
    select.value = value;
    chosen[name] = value;
    return el("label", {}, `${label} `, select);
  });
  const sentence = el("figcaption", { id: `${id}-said` });
  const details = el("details", {}, el("summary", { text: `Table: ${title}` }), el("div"));
  details.addEventListener("toggle", () => fillTable(chart));
  const figure = el("figure", { class: isWide ? "wide" : undefined },
    el("div", { class: "bar" }, el("h3", { text: title }), el("div", { class: "choices" }, ...selects,
      el("button", { type: "button", text: "PNG", "aria-label": `Save as PNG: ${title}`, onclick: () => savePicture(chart) }))), holder, sentence, details);
  canvas.setAttribute("aria-describedby", `${id}-said`);
  const chart = { id, title, canvas, holder, chosen, draw, height, minWidth, caption, rows, sentence, details,
    marks: null, cursor: -1, isDirty: true, isVisible: false, figure };
  listen(chart);
  parent.append(figure);
  charts.push(chart);
  seen.observe(canvas);
  return chart;
}

/** Paper and pictures of the whole page have no part that is out of sight. */
function drawAll() {
  for (const chart of charts) if (chart.isDirty) paint(chart);
}

/** Offer the chart's picture as a file. */
function savePicture(chart) {
  if (chart.isDirty) paint(chart);
  const [copy, { width, height }] = [document.createElement("canvas"), chart.canvas];
  Object.assign(copy, { width, height });
  const context = copy.getContext("2d");
  context.fillStyle = css("--card");
  context.fillRect(0, 0, width, height);
  context.drawImage(chart.canvas, 0, 0);
  el("a", { href: copy.toDataURL("image/png"), download: `${view ? view.kernel : "autotune"}-${chart.id}.png` }).click();
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

const rowName = (row) => `${view.isSpace ? "Configuration" : "Trial"} ${row + 1}`;

function trialTip(row) {
  const lines = [`${rowName(row)}: ${outcome(row)}`];
  const note = view.details[view.columns.detail[row]].split("\n")[0];
  if (note) lines.push(short(note, 120));
  lines.push(...view.varying.slice(0, 14).map((axis) => `${middle(axis.title, 30)} = ${text(axis, row, axis.labels)}`));
  return lines.join("\n");
}
