// The page: which kind it is, its colours, and how a served page follows its search.

const SHOW = { searches: showSearches, folder: showFolder, space: showSpace, message: showMessage };
const ASK_MS = 500; // between two questions to the server

let data = JSON.parse($("data").textContent);
let place = 0; // of the search that is shown

function show() {
  charts.forEach((chart) => seen.unobserve(chart.canvas));
  charts = [];
  filters = new Map();
  view = null;
  showTip(null);
  $("main").replaceChildren();
  $("sections").replaceChildren();
  for (const one of document.querySelectorAll(".of-search")) one.hidden = !["searches", "space"].includes(data.kind);
  $("search-label").hidden = true;
  SHOW[data.kind]();
  sayStates();
  colourMatrix();
}

function showSearches() {
  place = Math.min(place, data.searches.length - 1);
  $("search").replaceChildren(...data.searches.map((one, at) => el("option", { value: at, text: short(nameOf(one), 90) })));
  $("search").value = place;
  $("search-label").hidden = data.searches.length < 2;
  view = prepare(data.searches[place]);
  $("title").textContent = view.kernel;
  $("subtitle").replaceChildren(bdi(view.device), ...(view.problem ? [", ", bdi(view.problem)] : []), " (", bdi(view.source), ")");
  addHeadline();
  addBeside();
  addProgress();
  addFailures();
  addSpace();
  addImportance();
  addResources();
  addLadder();
  addComparison();
  addDiagnosis();
  addStrength();
  table.build("Trials");
  fillFilterPanel();
  showFilters();
}

// ------------------------------------------------------------------------------------------------- a live page

let isPaused = false;
let isPressed = false;
let heldBy = null; // a list of choices that may be open

/** Whether a new page would take something out of the reader's hands. */
const isUsed = () => heldBy || isPressed || charts.some((chart) => chart.cursor >= 0);

function follow() {
  setTimeout(async () => {
    if (!isPaused && !isUsed()) await ask();
    follow();
  }, ASK_MS);
}

async function ask() {
  const { address, stamp } = data.live;
  try {
    const answer = await fetch(`${address}&stamp=${stamp}`);
    if (answer.ok) update(await answer.json());
    sayLive(answer.ok ? "" : await answer.text());
  } catch {
    sayLive("The server does not answer.");
  }
}

function sayLive(problem) {
  $("live-state").textContent = problem || (isPaused ? "Paused" : "Live");
}

/** The states of the searches, which change while their trials do not. */
function sayStates() {
  $("states").replaceChildren(...(data.live ? data.live.states : []).map((text) => el("p", { class: "state" }, bdi(text))));
}

/** Show new data, if there is any but the states; what the reader has chosen stays. */
function update(found) {
  if (!found.kind) {
    if (String(data.live.states) !== String(found.live.states)) {
      data.live = found.live;
      sayStates();
    }
    return;
  }
  const before = remember();
  data = found;
  show();
  restore(before);
}

function remember() {
  const each = (selector, value) => new Map([...document.querySelectorAll(selector)].filter((one) => one.id).map((one) => [one.id, value(one)]));
  return {
    scroll: [window.scrollX, window.scrollY],
    focus: document.activeElement && document.activeElement.id,
    selects: each("main select", (one) => one.value),
    boxes: each("main input", (one) => one.checked),
    details: new Set(charts.filter((chart) => chart.details.open).map((chart) => chart.id)),
    visible: new Set(charts.filter((chart) => chart.isVisible).map((chart) => chart.id)),
    scrolled: [...document.querySelectorAll("main .scroll, main .canvas")].map((one) => [one.scrollLeft, one.scrollTop]),
    filters: [...filters].map(([id, filter]) => [id, filter.set ? { chosen: view.axis(id).values.filter((_, at) => filter.set[at]) } : filter]),
    table: { sortBy: table.sortBy, isDescending: table.isDescending, page: table.page },
  };
}

function restore(before) {
  for (const [id, value] of before.selects) {
    const select = $(id);
    if (!select || select.value === value || ![...select.options].some((one) => one.value === value)) continue;
    select.value = value;
    select.dispatchEvent(new Event("change"));
  }
  for (const [id, isChecked] of before.boxes) if ($(id)) $(id).checked = isChecked;
  for (const chart of charts) {
    chart.details.open = before.details.has(chart.id);
    chart.isVisible = before.visible.has(chart.id);
  }
  if (view) {
    for (const [id, filter] of before.filters) {
      const axis = view.axis(id);
      if (!axis) continue;
      if (filter.chosen) allow(axis, filter.chosen.map((value) => axis.values.indexOf(value)).filter((at) => at >= 0));
      else filters.set(id, filter);
    }
    if (view.axis(before.table.sortBy)) Object.assign(table, { ...before.table, order: null });
    applyFilters();
    table.show(before.table.page);
  }
  const scrolled = [...document.querySelectorAll("main .scroll, main .canvas")];
  if (scrolled.length === before.scrolled.length) scrolled.forEach((one, at) => one.scrollTo(...before.scrolled[at]));
  if (before.focus && $(before.focus)) $(before.focus).focus({ preventScroll: true });
  heldBy = null;
  window.scrollTo(...before.scroll);
}

function setTheme(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${name === "dark" ? "light" : "dark"} colours`);
  colourMatrix();
  redraw();
}

document.body.append(el("div", { id: "live", class: "skip", role: "status" }));
$("search").addEventListener("change", () => { place = Number($("search").value); show(); });
$("theme").addEventListener("click", () => setTheme(theme === "dark" ? "light" : "dark"));
$("trial-close").addEventListener("click", () => $("trial").close());
const wishes = matchMedia("(prefers-color-scheme: dark)");
wishes.addEventListener("change", () => setTheme(wishes.matches ? "dark" : "light"));
addEventListener("beforeprint", drawAll);
new ResizeObserver(() => redraw()).observe($("main"));
setTheme(wishes.matches ? "dark" : "light");
show();
if (data.live) {
  const pause = el("button", { type: "button", id: "pause", text: "Pause", onclick: () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Go on" : "Pause";
    sayLive("");
  } });
  $("follow").append(el("span", { id: "live-state", role: "status", text: "Live" }), " ", pause,
    ...(data.kind === "folder" ? [] : [" ", el("a", { href: "/", text: "All searches" })]));
  document.addEventListener("focusin", ({ target }) => { heldBy = target.matches("main select") ? target : null; });
  document.addEventListener("change", () => { heldBy = null; });
  document.addEventListener("pointerdown", () => { isPressed = true; });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { isPressed = false; });
  follow();
}
