// What several charts draw: frames, points, bars.

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
    colour.values.forEach((value, place) => {
      context.fillStyle = shades[place % shades.length];
      context.fillRect(x, 5, 10, 10);
      context.fillStyle = colours.ink;
      const label = short(plain(value), 16);
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

const BAR = 24;

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
 * Bars from top to bottom: `{label, value, text, tip, act, isStrong, isPoint, error, range, dot, dots, dotText}`; a
 * range instead of a bar where it is given, a line for the interval `error`, and a diamond for each of `dots`, with its
 * own text. `ends` are those of the axis, for points.
 */
function drawBars(context, width, height, colours, bars, { unit, isLog = false, labelMost = 44, ends }) {
  const widest = Math.max(0, ...bars.map((bar) => context.measureText(short(plain(bar.label), labelMost)).width));
  const left = Math.min(widest + 14, width * 0.44);
  const room = Math.max(0, ...bars.map((bar) => context.measureText([bar.text, bar.dotText].filter(Boolean).join("   ")).width)) + 12;
  const [before, after] = bars.some((bar) => bar.range) ? [Math.min(room, width * 0.2), 14] : [0, Math.min(room, width * 0.36)];
  const box = { left: left + before, right: Math.max(left + before + 40, width - after), top: 6, bottom: 6 + BAR * bars.length };
  const values = bars.flatMap((bar) => [bar.value, ...(bar.error || []), ...(bar.range || []), ...(bar.dot ? [bar.dot] : []), ...(bar.dots || [])]).filter((value) => value > 0);
  const [low, high] = ends || (values.length ? [Math.min(...values), Math.max(...values)] : [0.1, 1]);
  const scale = numberScale(ends ? low : isLog ? low / 1.3 : 0, high, box.left, box.right, isLog, width / 120);
  frame(context, colours, box, scale, null, unit, "");
  const marks = bars.map((bar, place) => {
    const y = box.top + BAR * (place + 0.5);
    context.fillStyle = colours.ink;
    context.textAlign = "right";
    context.fillText(fitMiddle(context, plain(bar.label), left - 10), left - 8, y);
    context.textAlign = "left";
    const end = bar.range ? drawRange(context, colours, scale, bar, y) : drawBar(context, colours, scale, bar, box.left, y);
    const from = bar.range ? end - 10 - context.measureText(bar.text).width : end + 6;
    drawBarTexts(context, colours, scale, bar, from, width, y);
    return { left: 0, top: y - BAR / 2, width, height: BAR, x: end, y, tip: bar.tip || `${bar.label}: ${bar.text}`, act: bar.act };
  });
  return boxes(marks);
}

/** A bar from the left edge; returns where it ends. */
function drawBar(context, colours, scale, bar, left, y) {
  if (!(bar.value > 0)) return left;
  const end = Math.max(left + (bar.isPoint ? 0 : 1), scale.at(bar.value));
  context.fillStyle = bar.isStrong ? colours.strong : colours.accent;
  if (bar.isPoint) context.fillRect(end - 4, y - 4, 8, 8);
  else context.fillRect(left, y - 7, end - left, 14);
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
function drawBarTexts(context, colours, scale, bar, from, width, y) {
  const room = bar.text ? context.measureText(bar.text).width : 0;
  const dots = (bar.dots || []).map(scale.at);
  const last = Math.max(0, ...dots) + 12;
  const isFree = dots.every((x) => x < from - 13 || x > from + room + 10);
  const at = isFree ? from : Math.max(from, last);
  context.fillStyle = bar.isFailed ? colours.fail : colours.ink;
  if (bar.text) context.fillText(fit(context, bar.text, width - at - 2), at, y);
  if (!dots.length) return;
  const after = Math.max(last, at + room + 14);
  context.fillStyle = colours.soft;
  context.fillText(fit(context, `◇ ${bar.dotText}`, width - after - 2), after, y);
  for (const x of dots) diamond(context, colours, x, y);
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
