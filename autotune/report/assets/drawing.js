// What several charts draw: frames, points, bars.

function frame(context, colours, box, sx, sy, xTitle, yTitle) {
  context.strokeStyle = colours.grid;
  context.lineWidth = 1;
  context.fillStyle = colours.soft;
  if (sy) {
    context.textAlign = "right";
    const said = fitApart(context, sy.ticks.map(([, text]) => text), box.left - 8);
    sy.ticks.forEach(([value], at) => {
      const y = Math.round(sy.at(value)) + 0.5;
      line(context, box.left, y, box.right, y);
      context.fillText(said[at], box.left - 6, y);
    });
    context.textAlign = "left";
    context.fillText(short(plain(yTitle), 60), Math.max(2, box.left - 50), box.top - 12);
  }
  context.textAlign = "center";
  let end = -Infinity;
  const labels = fitApart(context, sx.ticks.map(([, text]) => text), Math.max(60, (box.right - box.left) / sx.ticks.length - 6));
  for (const [at, [value]] of sx.ticks.entries()) {
    const x = Math.round(sx.at(value)) + 0.5;
    const label = labels[at];
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
  context.lineWidth = 1.2;
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
      context.fillStyle = context.strokeStyle = colours[colour % colours.length];
      last = colour;
    }
    if (view.isOfSearch(row)) context.strokeRect(px[row] - size / 2 + 0.5, py[row] - size / 2 + 0.5, size - 1, size - 1);
    else context.fillRect(px[row] - size / 2, py[row] - size / 2, size, size);
  }
  context.strokeStyle = palette.fail;
  context.lineWidth = 1.2;
  context.beginPath();
  for (const row of crosses) cross(context, px[row], py[row], size > 4 ? 3.5 : 2);
  context.stroke();
  context.strokeStyle = palette.strong;
  for (const row of [...view.ties, ...(view.best === null ? [] : [view.best])]) {
    if (px[row] !== px[row] || !view.selected[row]) continue;
    context.lineWidth = row === view.best ? 2.5 : 1;
    context.beginPath();
    context.arc(px[row], py[row], size + (row === view.best ? 3 : 1), 0, 7);
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
  const byCategory = colour && colour.isCategory;
  const box = { left: 58, right: width - 14, top: byCategory ? 54 : 38, bottom: height - 40 };
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
  const shades = byCategory ? colours.category : colours.bins;
  drawPoints(context, px, py, (row) => (view.bins[row] === FAILED ? FAILED : byCategory ? Math.max(0, colour.data[row]) : view.bins[row]), shades, colours);
  if (byCategory) {
    let x = 8;
    apart(colour.values.map(plain), 16).forEach((label, place) => {
      context.fillStyle = shades[place % shades.length];
      context.fillRect(x, 5, 10, 10);
      context.fillStyle = colours.ink;
      context.fillText(label, x + 14, 10);
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

const BAR = 24; // height of a bar with its room
const LINE = 18; // of one with its label and figures above it

function diamond(context, colours, x, y) {
  context.strokeStyle = colours.ink;
  context.fillStyle = colours.card;
  context.lineWidth = 1.5;
  context.beginPath();
  for (const [across, down] of [[-6, 0], [0, -6], [6, 0], [0, 6]]) context.lineTo(x + across, y + down);
  context.closePath();
  context.fill();
  context.stroke();
}

/**
 * Bars from top to bottom: `{label, value, text, tip, act, isStrong, isHollow, isPoint, error, range, dot, dots, dotText}`;
 * a range instead of a bar where it is given, a line for the interval `error`, and a diamond for each of `dots`, with its
 * own text. `ends` are those of the axis, for points.
 */
function drawBars(context, width, height, colours, bars, { unit, isLog = false, labelMost = 44, ends }) {
  const [isAbove, step] = [isStacked(bars, width), barStep(bars, width)];
  const widest = Math.max(0, ...bars.map((bar) => context.measureText(middle(plain(bar.label), labelMost)).width));
  const left = isAbove ? 8 : Math.min(widest + 14, width * 0.44);
  const room = Math.max(0, ...bars.map((bar) => context.measureText([bar.text, bar.dotText].filter(Boolean).join("   ")).width)) + 12;
  const [before, after] = isAbove ? [0, 8] : bars.some((bar) => bar.range) ? [Math.min(room, width * 0.2), 14] : [0, Math.min(room, width * 0.36)];
  const box = { left: left + before, right: Math.max(left + before + 40, width - after), top: 6, bottom: 6 + step * bars.length };
  const labels = fitApart(context, bars.map((bar) => bar.label), isAbove ? width - 10 : left - 10);
  const values = bars.flatMap((bar) => [bar.value, ...(bar.error || []), ...(bar.range || []), ...(bar.dot ? [bar.dot] : []), ...(bar.dots || [])]).filter((value) => value > 0);
  const [low, high] = ends || (values.length ? [Math.min(...values), Math.max(...values)] : [0.1, 1]);
  const scale = numberScale(ends ? low : isLog ? low / 1.3 : 0, high, box.left, box.right, isLog, width / 90);
  frame(context, colours, box, scale, null, unit, "");
  const marks = bars.map((bar, place) => {
    const top = box.top + step * place;
    const y = isAbove ? top + 2.5 * LINE : top + BAR / 2;
    context.fillStyle = colours.ink;
    context.textAlign = isAbove ? "left" : "right";
    context.fillText(labels[place], isAbove ? 2 : left - 8, isAbove ? top + LINE / 2 : y);
    context.textAlign = "left";
    const end = bar.range ? drawRange(context, colours, scale, bar, y) : drawBar(context, colours, scale, bar, box.left, y);
    const from = isAbove ? 2 : bar.range ? end - 10 - context.measureText(bar.text).width : end + 6;
    drawBarTexts(context, colours, scale, bar, from, width, y, isAbove ? y - LINE : y);
    return { left: 0, top, width, height: step, x: end, y, tip: bar.tip || `${bar.label}: ${bar.text}`, act: bar.act };
  });
  return boxes(marks);
}

/** A bar from the left edge; returns where it ends. */
function drawBar(context, colours, scale, bar, left, y) {
  if (!(bar.value > 0)) return left;
  const end = Math.max(left + (bar.isPoint ? 0 : 1), scale.at(bar.value));
  context.fillStyle = context.strokeStyle = bar.isStrong ? colours.strong : colours.accent;
  context.lineWidth = 1.5;
  if (bar.isPoint) context.fillRect(end - 4, y - 4, 8, 8);
  else context[bar.isHollow ? "strokeRect" : "fillRect"](left, y - 7, end - left, 14);
  if (!bar.error) return end;
  context.strokeStyle = colours.ink;
  context.lineWidth = 1.5;
  const places = bar.error.map(scale.at);
  drawInterval(context, places.map((x) => [x, y]));
  return Math.max(end, ...places);
}

/** An interval between two places, with a stroke across each end. */
function drawInterval(context, [[x0, y0], [x1, y1]]) {
  line(context, x0, y0, x1, y1);
  const [across, down] = x0 === x1 ? [3, 0] : [0, 4];
  for (const [x, y] of [[x0, y0], [x1, y1]]) line(context, x - across, y - down, x + across, y + down);
}

/** A band, with a mark at its value and a dot at its best, which is where its text belongs; returns the dot's place. */
function drawRange(context, colours, scale, bar, y) {
  const [from, to] = bar.range.map(scale.at);
  context.fillStyle = colours.faint;
  context.fillRect(from, y - 4, Math.max(2, to - from), 8);
  context.fillStyle = colours.ink;
  context.fillRect(scale.at(bar.value) - 1.5, y - 8, 3, 16);
  context.fillStyle = colours.strong;
  context.beginPath();
  context.arc(scale.at(bar.dot), y, 4, 0, 7);
  context.fill();
  return scale.at(bar.dot);
}

/** The text behind a bar, and the diamonds with theirs; the first goes behind the diamonds if one is in its way. */
function drawBarTexts(context, colours, scale, bar, from, width, y, textY) {
  const room = bar.text ? context.measureText(bar.text).width : 0;
  const dots = (bar.dots || []).map(scale.at);
  const last = textY === y ? Math.max(0, ...dots) + 12 : 0;
  const isFree = textY !== y || dots.every((x) => x < from - 13 || x > from + room + 10);
  const at = isFree ? from : Math.max(from, last);
  context.fillStyle = bar.isFailed ? colours.fail : colours.ink;
  if (bar.text) context.fillText(fit(context, bar.text, width - at - 2), at, textY);
  if (!dots.length) return;
  const after = Math.max(last, at + room + 14);
  context.fillStyle = colours.soft;
  context.fillText(fit(context, `◇ ${bar.dotText}`, width - after - 2), after, textY);
  for (const x of dots) diamond(context, colours, x, y);
}

function fit(context, label, room) {
  if (context.measureText(label).width <= room) return label;
  let most = label.length - 1;
  while (most > 1 && context.measureText(`${label.slice(0, most)}…`).width > room) most--;
  return `${label.slice(0, most)}…`;
}

/** The same for names, as `apart` cuts them. */
const fitApart = (context, names, room) => apart(names.map(plain), 0, (name) => {
  let kept = name.length;
  if (context.measureText(name).width <= room) return name;
  while (kept > 2 && context.measureText(cutTo(name, kept)).width > room) kept--;
  return cutTo(name, kept);
});

const LONG = 20; // letters of a label that has no room beside bars on a phone
/** Whether label and figures stand above their bars: beside them, intervals or labels would be cut. */
const isStacked = (bars, width) => width < 560 && bars.some((bar) => bar.error || (bar.label.length > LONG && !bar.range));
const barStep = (bars, width) => (isStacked(bars, width) ? 3 * LINE : BAR);
const barHeight = (bars, width) => barStep(bars, width) * Math.max(1, bars.length) + 46;
