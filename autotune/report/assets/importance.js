// What matters: importance, effects, values that no good configuration has.

const POOR_FIT = 0.5; // of unseen variance: below it, shares say nothing
const NEAR = 1.1; // times the best: what counts as good

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
      id: "importance-chart", title: mattersMost(importance), height: (width) => barHeight(bars, width),
      draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: "share of the variance of log time" }),
      caption: () => {
        const poor = importance.fit < POOR_FIT ? " That is poor: read nothing into these shares." : "";
        return `Functional ANOVA of a random forest, from ${whole(importance.trials)} trials; it explains ${percent(Math.max(0, importance.fit))} of the variance of trials that it has not seen.${poor}${interactionText(importance)}`;
      },
      rows: () => [["parameter or pair", "share"], bars.map((bar) => [bar.label, bar.text])],
    });
  }
  if (view.varying.length && view.timed.length) {
    const start = important()[0] || view.varying[0];
    const bars = ({ of }) => statsOf(view.axis(of)).map((one) => ({
      label: one.value, value: one.median, range: one.times.length ? [one.low, one.high] : undefined, dot: one.best,
      text: one.times.length ? `${number(one.best, 3)} ms` : "all failed", isFailed: !one.times.length,
      tip: `${view.axis(of).title} = ${one.value}\n${groupText(one)}`,
      act: () => toggle(view.axis(of), one.place),
    }));
    view.effects = addChart(grid, {
      id: "effects", title: "Effect of one parameter", height: (width, chosen) => barHeight(bars(chosen), width),
      choices: [{ name: "of", label: "parameter", options: view.varying.map((axis) => [axis.id, axis.title]), value: start.id }],
      draw: (context, width, height, colours, chosen) => drawBars(context, width, height, colours, bars(chosen), { unit: `${searchMs("time")}, logarithmic`, isLog: true }),
      caption: ({ of }) => `${effectText(view.axis(of))}Dot: the best trial with this value. Mark: the median. Band: 10% to 90% of its trials.${searchClock()}`,
      rows: ({ of }) => [["value", searchMs("best"), "10% (ms)", "median (ms)", "90% (ms)", "trials", "failed"],
        statsOf(view.axis(of)).map((one) => [one.value, one.best, one.low, one.median, one.high, one.count, one.failed])],
    });
    addUseless(grid);
  }
}

/** Which parameter decides the time, as far as the model can tell. */
function mattersMost({ single, pairs, fit }) {
  if (fit < POOR_FIT) return "What decides the time: too uncertain to say";
  const [[name, share]] = single;
  const stronger = pairs.find((pair) => pair[2] > share);
  return `${short(name, 40)} matters most: ${percent(share)} of the variance of log time${stronger ? `, more still ${short(stronger[0], 40)} with ${short(stronger[1], 40)}` : ""}`;
}

/** What the strongest pair means: where the one decides the time, and where it hardly does. */
function interactionText({ pairs, fit }) {
  const axes = pairs.length ? pairs[0].slice(0, 2).map((name) => view.varying.find((axis) => axis.title === name)) : [];
  if (fit < POOR_FIT || axes.length < 2 || axes.includes(undefined) || pairs[0][2] < 0.01) return "";
  const found = [spreads(...axes), spreads(...axes.slice().reverse())].filter((one) => one.groups.length > 1 && one.groups[0].factor >= NEAR)
    .sort((a, b) => contrast(b.groups) - contrast(a.groups));
  if (!found.length) return "";
  const { of, given, groups } = found[0];
  const [strong, weak] = [groups[0], groups[groups.length - 1]];
  const said = ({ place, fast, slow }) => `${short(given.title, 40)}=${middle(given.values[place])} its best is ${number(fast.time, 3)} ms (${middle(fast.value)}) against ${number(slow.time, 3)} ms (${middle(slow.value)})`;
  const where = groups.filter((one) => one.factor >= NEAR).length === 1 ? "only" : "most";
  return ` ${short(of.title, 40)} matters ${where} with ${short(given.title, 40)}=${middle(given.values[strong.place])}: with ${said(strong)}; with ${said(weak)}.`;
}

const contrast = (groups) => groups[0].factor / groups[groups.length - 1].factor;

/** For each value of one parameter, between which best times another parameter moves; the widest first. */
function spreads(of, given) {
  const best = given.values.map(() => new Float64Array(of.values.length).fill(Infinity));
  for (const row of view.timed) {
    const [one, other] = [of.data[row], given.data[row]];
    if (one >= 0 && other >= 0) best[other][one] = Math.min(best[other][one], view.once[row]);
  }
  const groups = best.map((times, place) => {
    const sorted = [...times].map((time, at) => ({ time, value: of.values[at] })).filter(({ time }) => time < Infinity).sort((a, b) => a.time - b.time);
    const [fast, slow] = [sorted[0], sorted[sorted.length - 1]];
    return { place, fast, slow, count: sorted.length, factor: sorted.length ? slow.time / fast.time : NaN };
  });
  return { of, given, groups: groups.filter((one) => one.count > 1).sort((a, b) => b.factor - a.factor) };
}

/** Which value is fastest in the median, and what the slowest costs. */
function effectText(axis) {
  const timed = statsOf(axis).filter((one) => one.times.length).sort((a, b) => a.median - b.median);
  if (timed.length < 2) return "";
  const [first, last] = [timed[0], timed[timed.length - 1]];
  return `${short(axis.title, 40)}=${middle(first.value)} is the fastest in the median; ${middle(last.value)} takes ${number(last.median / first.median, 3)} times as long. `;
}

/** Values that no configuration near the best has. */
function addUseless(grid) {
  const least = extent(view.once, true)[0];
  const rows = [];
  for (const axis of view.varying) {
    const [best, tried, works] = [new Float64Array(axis.values.length).fill(Infinity), new Int32Array(axis.values.length), new Int32Array(axis.values.length)];
    for (let row = 0; row < view.count; row++) {
      const place = axis.data[row];
      if (place < 0) continue;
      tried[place]++;
      if (view.once[row] > 0) works[place]++;
      if (view.once[row] < best[place]) best[place] = view.once[row];
    }
    axis.values.forEach((value, place) => {
      if (tried[place] && !(best[place] <= NEAR * least)) rows.push([axis.title, value, tried[place], works[place], best[place] === Infinity ? NaN : best[place] / least]);
    });
  }
  rows.sort((a, b) => (Number.isNaN(b[4]) ? 1e9 : b[4]) - (Number.isNaN(a[4]) ? 1e9 : a[4]));
  const near = `within 10% of the fastest${view.hasLastRound ? " of the search" : ""}`;
  const what = rows.length ? tableOf(["parameter", "value", "tried", "worked", "its best, times the fastest"], rows)
    : el("p", { text: `Every value is in a configuration ${near}.` });
  grid.append(el("div", { class: "panel" }, el("h3", { text: `Values that no configuration ${near} has` }), what));
}
