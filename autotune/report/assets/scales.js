// Colours and scales.

const BINS = 16; // colours from the fastest to the slowest trial
const SHADES = {
  light: ["#0b2a5b", "#2878b5", "#b4cadb"],
  dark: ["#fff0b3", "#4cb0da", "#2c4d68"],
};

let theme = "light";

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
