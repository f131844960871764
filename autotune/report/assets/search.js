// One search: its columns as axes, and the filters that apply to all charts.

const FAILED = 255; // the bin of a trial without a time
const MEASURES = [
  ["time_ms", "time (ms)", true],
  ["energy_j", "energy (J)", true],
  ["search_ms", "time in the search (ms)", true],
  ["compile_ms", "compile time (ms)", false],
  ["cost_s", "cost of the trial (s)", false],
  ["registers", "registers per thread", false],
  ["spill_bytes", "spilled bytes per thread", false],
  ["shared_bytes", "shared memory per block (bytes)", false],
  ["occupancy", "occupancy", false],
  ["order", "evaluation", false],
  ["elapsed", "summed cost so far (s)", false],
];

const STANDINGS = ["best", "tie", "slower", "not in it"]; // in the last round

let view = null; // the search that is shown
let filters = new Map(); // axis to the set of its allowed positions, or to a range

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
    id: `p${place}`, title: parameter.name, isCategory: true, values: parameter.values.map(shown), labels: apart(parameter.values.map(shown), 40),
    raw: parameter.values, macros: parameter.macros, data: columns.configs[place],
  }));
  const measures = MEASURES.filter(([id]) => raw[id]).map(([id, title, isLog]) => ({
    id, title: id === "order" && (!search.hasOrder || search.isSpace) ? "number" : title, isLog, data: numbers(raw[id]) }));
  const status = { id: "status", title: "status", isCategory: true, values: search.statuses, data: columns.status };
  const limit = columns.limit && { id: "limit", title: "occupancy is limited by", isCategory: true, values: search.limits,
    data: columns.limit.map((place) => (place === null ? -1 : place)) };
  const time = numbers(columns.time_ms);
  const once = columns.search_ms ? numbers(columns.search_ms) : time; // all by one clock: as the search timed them
  const bestTime = search.best === null ? NaN : time[search.best];
  const hasLastRound = columns.final.some(Boolean);
  // The last round decides: a time below the best's that only the search has is shown, and is never the best so far.
  const isUnconfirmed = (row) => (hasLastRound || !search.hasOrder) && !columns.final[row] && time[row] < bestTime;
  const isOfSearch = (row) => isUnconfirmed(row) || (hasLastRound && !columns.final[row] && time[row] > 0);
  const ties = new Set(search.ties);
  const standingOf = (row) => (row === search.best ? 0 : ties.has(row) ? 1 : columns.final[row] ? 2 : isOfSearch(row) ? 3 : -1);
  const standing = (hasLastRound || ties.size > 0) && { id: "standing", title: "last round", isCategory: true, values: STANDINGS, labels: STANDINGS,
    data: Array.from(time.keys(), standingOf) };
  // The best comes first, then its ties; a time of the search alone is not before them.
  const first = (row) => (row === search.best ? 0 : ties.has(row) ? 1 : 2);
  const timed = [...time.keys()].filter((row) => !Number.isNaN(time[row])).sort((a, b) => first(a) - first(b) || time[a] - time[b]);
  const bins = new Uint8Array(count).fill(search.isSpace ? 0 : FAILED);
  timed.forEach((row, rank) => { bins[row] = Math.floor((rank * BINS) / timed.length); });
  const untimed = [...time.keys()].filter((row) => Number.isNaN(time[row]));
  const axes = [...parameters, status, ...(standing ? [standing] : []), ...(limit ? [limit] : []), ...measures];
  return {
    ...search, count, columns, parameters, measures, status, standing, limit, time, once, bins, axes, timed, failed: search.isSpace ? [] : untimed,
    // slow ones first, so that fast ones lie on top
    slowFirst: Int32Array.from([...untimed, ...timed.slice().reverse()]),
    varying: parameters.filter((axis) => new Set(axis.data).size > 1),
    axis: (id) => axes.find((axis) => axis.id === id),
    bestTime, hasLastRound, isOfSearch, isTie: (row) => ties.has(row), isUnconfirmed, confirmed: time.map((one, row) => (isUnconfirmed(row) ? NaN : one)),
    selected: new Uint8Array(count).fill(1), selectedCount: count,
  };
}

/** What the rows of the table are. */
const nouns = () => (view.isSpace ? "configurations" : "trials");
const text = (axis, row, texts = axis.values) =>
  axis.isCategory ? (axis.data[row] < 0 ? "–" : texts[axis.data[row]]) : number(axis.data[row]);
const configText = (row) => view.parameters.map((axis) => `${axis.title}=${text(axis, row)}`).join(" ");
const outcome = (row) =>
  view.isSpace ? "valid" : Number.isNaN(view.time[row]) ? words(view.statuses[view.columns.status[row]]) : timeText(row);
/** A time, with the interval that the last round gives it, or the mark that only the search has it. */
function timeText(row, at = (ms) => ms, unit = "ms") {
  const ends = intervalOf(row);
  const said = `${number(at(view.time[row]))} ${unit}`;
  const reach = ends ? ` (${ends.map(at).sort((a, b) => a - b).map((end) => number(end)).join(" to ")})` : "";
  return `${said}${reach}${view.isTie(row) ? ", tie" : view.isOfSearch(row) ? ", search only" : ""}`;
}
/** How many times as long one trial takes as another: in the last round if both were in it, else in the search. */
const timesOf = (row, other) => (view.columns.final[row] && view.columns.final[other] ? view.time[row] / view.time[other] : view.once[row] / view.once[other]);
/** The interval of a trial's time over the best's, by the ratios in each round; empty for one that was not in both. */
function reachText(row) {
  const { ratio_low: low, ratio_high: high } = view.columns;
  if (row === view.best || !low || low[row] === null) return "";
  const [least, most] = [number(low[row], 3), number(high[row], 3)];
  return least === most ? most : `${least} to ${most}`;
}
/** What a chart of all trials says of its clock; empty where there is one only. */
const searchClock = () => (view.hasLastRound ? " Times are those of the search, which timed every trial once." : "");
const searchMs = (name) => `${name}${view.hasLastRound ? " in the search" : ""} (ms)`;
/** What the marks of points say; empty where all were timed alike. */
const pointsText = () => (view.hasLastRound ? " Filled: timed in the last round. Hollow: in the search only. Ring: the best; thin rings: its ties." : "");
/** A sentence about times of the search that are lower than the best's; empty if there are none. */
function belowBest() {
  const low = view.timed.filter(view.isUnconfirmed);
  return low.length ? ` ${whole(low.length)} of the search ${low.length > 1 ? "are" : "is"} below the best, down to ${number(view.time[low[0]])} ms, and ${low.length > 1 ? "were" : "was"} not timed again in the last round.` : "";
}
const intervalOf = (row) => {
  const { low_ms: low, high_ms: high } = view.columns;
  return low && low[row] !== null ? [low[row], high[row]] : null;
};

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
  return `${axis.title}: ${chosen.length > 4 ? `${chosen.length} values` : chosen.map((one) => middle(one, 20)).join(", ")}`;
}

function showFilters() {
  $("count").textContent = `${whole(view.selectedCount)} of ${whole(view.count)} ${nouns()}`;
  const chips = [...filters].map(([id, filter]) => {
    const said = filterText(view.axis(id), filter);
    return el("button", { type: "button", class: "chip", "aria-label": `Remove filter ${said}`, title: `Remove this filter: ${said}`,
      onclick: () => { filters.delete(id); applyFilters(); } }, bdi(middle(said, 80)), " ×");
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
  const sets = [...(view.isSpace ? [] : [view.status]), ...(view.standing ? [view.standing] : []), ...(view.limit ? [view.limit] : []), ...view.varying].map((axis) => {
    const counts = new Int32Array(axis.values.length);
    for (const place of axis.data) if (place >= 0) counts[place]++;
    const boxes = axis.values.map((value, place) => counts[place] === 0 ? "" :
      el("label", {},
        el("input", { type: "checkbox", "data-axis": axis.id, "data-place": place, onchange: () => toggle(axis, place) }),
        " ", named(axis === view.status ? words(value) : value, axis.labels?.[place]), el("span", { class: "soft", text: ` ${whole(counts[place])}` })));
    return el("fieldset", {}, el("legend", {}, bdi(short(axis.title, 60))), ...boxes);
  });
  $("filter-values").replaceChildren(...sets);
}
