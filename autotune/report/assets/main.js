// The page of searches.

const data = JSON.parse($("data").textContent);

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
