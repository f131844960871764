// The space: parallel coordinates, any two quantities, a heat map, the neighbourhood of the best.

const LEVELS = 48; // of a number on an axis of the parallel coordinates

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
      caption: ({ x, y }) => `${view.axis(y).title} against ${view.axis(x).title}; ${theme === "dark" ? "brighter" : "darker"} is faster.${pointsText()} Drag to select, click to open a trial.`,
      rows: ({ x, y }) => pointRows(view.axis(x), view.axis(y)),
    });
  }
  if (view.varying.length > 1) addHeat(grid, byImportance);
  addNeighbours(grid);
}

function addParallel(grid) {
  const time = view.axis("search_ms") || view.axis("time_ms"); // by one clock
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
      const isStaggered = axes.length > 8; // titles of neighbours stand in two rows
      axes.forEach((axis, at) => {
        context.strokeStyle = colours.soft;
        context.lineWidth = 1;
        line(context, x(at), box.top, x(at), box.bottom);
        context.fillStyle = colours.ink;
        context.textAlign = "center";
        context.font = "600 12px system-ui, sans-serif";
        const title = fit(context, plain(axis.title), Math.max(60, ((isStaggered ? 1.9 : 1) * (box.right - box.left)) / axes.length - 6));
        const half = context.measureText(title).width / 2 + 2;
        context.fillText(title, Math.min(Math.max(x(at), half), width - half), isStaggered && at % 2 ? 12 : 28);
        context.font = "12px system-ui, sans-serif";
        const filter = filters.get(axis.id);
        const labels = axis.isCategory ? fitApart(context, axis.values, 78).map((said, place) => [place, said])
          : [[0, number(range[0], 3)], [LEVELS - 1, number(range[1], 3)], ...(view.failed.length ? [[LEVELS, "failed"]] : [])];
        for (const [place, said] of labels) {
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
            tip: `${axis.title} = ${axis.values[place]}\nClick to show only these`, act: () => toggle(axis, place) });
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
    caption: () => view.isSpace ? "Each line joins two values that some valid configuration has; a wider line stands for more. Drag along an axis or click values to filter."
      : `Each line joins two values that some trial has: its colour is their mean rank (${theme === "dark" ? "brighter" : "darker"} is faster), its width their number. The thick line is the best.${searchClock()} Drag along an axis or click values to filter.`,
    rows: () => {
      if (view.isSpace) return [["parameter", "value", "configurations"], view.varying.flatMap((axis) => statsOf(axis).map((one) => [axis.title, one.value, one.count]))];
      const rows = view.varying.flatMap((axis) => statsOf(axis).map((one) => [axis.title, one.value, one.count, one.failed, one.best, one.median]));
      return [["parameter", "value", "trials", "failed", searchMs("best"), "median (ms)"], rows];
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
      context.strokeStyle = isFailed ? colours.fail : view.isSpace ? colours.accent : colours.bins[Math.round(((mean(cell) - low) / (high - low || 1)) * (BINS - 1))];
      context.lineWidth = 0.7 + 2.5 * Math.sqrt(counts[cell] / most);
      context.setLineDash(isFailed ? [4, 3] : []);
      context.beginPath();
      link(cell);
      context.stroke();
    }
    context.setLineDash([]);
    if (view.best !== null && view.selected[view.best] && one[view.best] >= 0 && other[view.best] >= 0) {
      for (const [colour, wide] of [[colours.card, 9], [colours.strong, 5]]) { // its edge tells it from the others
        context.strokeStyle = colour;
        context.lineWidth = wide;
        context.beginPath();
        link(one[view.best] * width + other[view.best]);
        context.stroke();
      }
    }
  }
}

/** A quantile of sorted numbers; between two of them it is interpolated. */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at % 1);
}

/** The selected rows by group: how many, how many failed, and their times in the search, the fastest first. */
function tally(groupOf) {
  const found = new Map();
  for (let row = 0; row < view.count; row++) {
    const key = groupOf(row);
    if (key < 0 || !view.selected[row]) continue;
    if (!found.has(key)) found.set(key, { key, count: 0, failed: 0, times: [] });
    const group = found.get(key);
    group.count++;
    if (view.once[row] > 0) group.times.push(view.once[row]);
    else if (view.bins[row] === FAILED) group.failed++;
  }
  for (const group of found.values()) group.times.sort((a, b) => a - b);
  return [...found.values()].map((group) => ({ ...group, best: group.times[0] ?? NaN, median: quantile(group.times, 0.5) }));
}

const groupText = (group) => view.isSpace ? `${whole(group.count)} configurations`
  : `best ${number(group.best)} ms, median ${number(group.median)} ms${view.hasLastRound ? ", in the search" : ""}\n${whole(group.count)} trials, ${whole(group.failed)} failed`;

/** Per value of a parameter, in the order of its values. */
const statsOf = (axis) => tally((row) => axis.data[row]).sort((a, b) => a.key - b.key).map((one) => ({ ...one, place: one.key,
  value: axis.values[one.key], low: quantile(one.times, 0.1), high: quantile(one.times, 0.9) }));

const STATISTICS = [["best", "best time"], ["median", "median time"], ["count", "trials"], ["share", "share of failures"]];

function addHeat(grid, byImportance) {
  const options = view.varying.map((axis) => [axis.id, axis.title]);
  const [one, other] = [byImportance[0] || view.varying[0], byImportance[1] || view.varying[1]];
  const cells = ({ x, y }) => {
    const [a, b] = [view.axis(x), view.axis(y)];
    const pair = (row) => (a.data[row] < 0 || b.data[row] < 0 ? -1 : a.data[row] * b.values.length + b.data[row]);
    return tally(pair).map((cell) => ({ ...cell, a: Math.floor(cell.key / b.values.length), b: cell.key % b.values.length, share: cell.failed / cell.count }));
  };
  const statistics = view.isSpace ? [["count", "configurations"]] : STATISTICS;
  view.heat = addChart(grid, {
    id: "heat", title: "Heat map of two parameters", isWide: view.isSpace,
    height: (width, { y }) => Math.max(220, 60 + 30 * view.axis(y).values.length),
    choices: [{ name: "x", label: "x", options, value: one.id }, { name: "y", label: "y", options, value: other.id },
      { name: "show", label: "show", options: statistics, value: statistics[0][0] }],
    draw: (context, width, height, colours, chosen) => {
      const [a, b] = [view.axis(chosen.x), view.axis(chosen.y)];
      const left = Math.min(width * 0.35, 20 + Math.max(...b.values.map((value) => context.measureText(short(plain(value), 24)).width)));
      const box = { left, right: width - 10, top: 26, bottom: height - 40 };
      const [sx, sy] = [categoryScale(a, box.left, box.right), categoryScale(b, box.bottom, box.top)];
      const found = cells(chosen);
      const known = found.map((cell) => cell[chosen.show]).filter((value) => !Number.isNaN(value));
      const [low, high] = [Math.min(...known), Math.max(...known)];
      const isTime = chosen.show === "best" || chosen.show === "median";
      context.fillStyle = colours.soft;
      context.textAlign = "right";
      const [down, across] = [[sy, left - 8], [sx, Math.abs(sx.step) - 3]].map(([scale, room]) => fitApart(context, scale.ticks.map(([, said]) => said), room));
      sy.ticks.forEach(([place], at) => context.fillText(down[at], left - 6, sy.at(place)));
      context.textAlign = "center";
      sx.ticks.forEach(([place], at) => context.fillText(across[at], sx.at(place), box.bottom + 12));
      context.fillText(short(plain(a.title), 60), (box.left + box.right) / 2, box.bottom + 28);
      context.textAlign = "left";
      context.fillText(short(plain(b.title), 60), 4, 12);
      const marks = found.map((cell) => {
        const value = cell[chosen.show];
        const [cx, cy] = [sx.at(cell.a), sy.at(cell.b)];
        const [wide, tall] = [Math.abs(sx.step) - 2, Math.abs(sy.step) - 2];
        const share = Number.isNaN(value) ? 0 : isTime ? (high > low ? Math.log(value / low) / Math.log(high / low) : 0) : high > low ? 1 - (value - low) / (high - low) : 0;
        const colour = Number.isNaN(value) ? null : shade(share);
        context.fillStyle = colour || colours.card;
        context.fillRect(cx - wide / 2, cy - tall / 2, wide, tall);
        if (!colour) {
          context.strokeStyle = colours.fail;
          context.lineWidth = 1.5;
          context.beginPath();
          cross(context, cx, cy, 5);
          context.stroke();
        } else {
          const said = chosen.show === "share" ? percent(value) : number(value, 3);
          context.fillStyle = inkOn(colour);
          context.textAlign = "center";
          if (context.measureText(said).width < wide - 2 && tall > 12) context.fillText(said, cx, cy);
          context.textAlign = "left";
        }
        return { left: cx - wide / 2, top: cy - tall / 2, width: wide, height: tall, x: cx, y: cy,
          tip: `${a.title} = ${a.values[cell.a]}, ${b.title} = ${b.values[cell.b]}\n${groupText(cell)}`,
          act: () => { allow(a, [cell.a]); allow(b, [cell.b]); applyFilters(); } };
      });
      return boxes(marks);
    },
    caption: () => view.isSpace ? "An empty cell has no valid configuration in the sample. Click a cell to show only its configurations."
      : `An empty cell was not tried, a cross only failed. Click a cell to show its trials only.${searchClock()}`,
    rows: (chosen) => [[view.axis(chosen.x).title, view.axis(chosen.y).title, searchMs("best"), "median (ms)", "trials", "failed"],
      cells(chosen).map((cell) => [view.axis(chosen.x).values[cell.a], view.axis(chosen.y).values[cell.b], cell.best, cell.median, cell.count, cell.failed])],
  });
}

function addNeighbours(grid) {
  if (view.best === null) return;
  const best = view.best;
  const found = [];
  for (let row = 0; row < view.count; row++) {
    let [changed, count] = [null, 0];
    for (const axis of view.parameters) if (axis.data[row] !== axis.data[best] && ++count <= 1) changed = axis;
    if (count === 1) found.push({ row, axis: changed, factor: timesOf(row, best) });
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
    text: Number.isNaN(factor) ? outcome(row) : `${number(factor, 3)} x${view.isOfSearch(row) ? ", search only" : ""}`, tip: trialTip(row), act: () => openTrial(row),
  }));
  addChart(grid, {
    id: "neighbours", title: "Neighbourhood of the best", height: (width) => barHeight(bars, width),
    draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: "times the best time" }),
    caption: () => `What each single change costs: ${whole(found.length)} of ${whole(possible)} single changes were tried${found.length < possible ? "; the others were not proposed or are not valid" : ""}.`,
    rows: () => [["change", "times the best"], bars.map((bar) => [bar.label, Number.isNaN(bar.value) ? bar.text : bar.value])],
  });
}

/** Varying parameters, the most important first. */
