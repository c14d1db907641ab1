"use strict";
const runs = JSON.parse(document.getElementById("data").textContent).runs;
const tip = document.getElementById("tip");

// What a cell is sorted by: its value if it carries one, its number if it is one, its text.
function key(cell) {
  const text = cell === undefined ? "" : cell.dataset.v ?? cell.textContent.trim();
  const number = parseFloat(text);
  return text === "" || text === "-" ? null : /^[-+]?[\d.]/.test(text) && !Number.isNaN(number) ? number : text;
}

function sort(table, column, descending) {
  const rows = [...table.tBodies[0].rows].map(row => [key(row.cells[column]), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return descending ? -order : order;
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

function sortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.tabIndex = 0;
    const turn = () => sort(table, column, head.getAttribute("aria-sort") === "ascending");
    head.addEventListener("click", turn);
    head.addEventListener("keydown", event => { if (event.key === "Enter") turn(); });
  });
}

function show(text, event) {
  tip.textContent = text;
  tip.hidden = false;
  const room = innerWidth - tip.offsetWidth - 8;
  tip.style.left = Math.min(event.clientX + 14, room) + "px";
  tip.style.top = event.clientY + 14 + "px";
}

// The place of the pointer in the coordinates of a drawing.
function place(svg, event) {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  return [(event.clientX - box.left) * view.width / box.width, (event.clientY - box.top) * view.height / box.height];
}

function chart(svg) {
  const points = [...svg.querySelectorAll("polyline")].flatMap(line => {
    const name = line.parentNode.dataset.name, values = line.dataset.v.split(" ");
    return line.getAttribute("points").split(" ").map((at, i) => [...at.split(",").map(Number), name, values[i].split(":")]);
  });
  svg.addEventListener("mousemove", event => {
    const [x, y] = place(svg, event);
    let best = null, least = 400;
    for (const point of points) {
      const distance = (point[0] - x) ** 2 + (point[1] - y) ** 2;
      if (distance < least) [best, least] = [point, distance];
    }
    if (best) show(`${best[2]}: ${best[3][1]} at ${best[3][0]}`, event); else tip.hidden = true;
  });
  svg.addEventListener("mouseleave", () => { tip.hidden = true; });
}

function matrix(svg) {
  const rows = svg.dataset.values.split(";").map(row => row.split(","));
  const side = 300, left = 56, top = 44;
  svg.addEventListener("mousemove", event => {
    const [x, y] = place(svg, event), count = rows.length;
    const column = Math.floor((x - left) / side * count), row = Math.floor((y - top) / side * count);
    const value = rows[row] && rows[row][column];
    if (value) show(`task ${row + 1} after task ${column + 1}: ${value}%`, event); else tip.hidden = true;
  });
  svg.addEventListener("mouseleave", () => { tip.hidden = true; });
}

function cell(tag, text, value) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (value !== undefined) element.dataset.v = value;
  return element;
}

function compare() {
  const [left, right, measure] = ["left", "right", "measure"].map(id => document.getElementById(id).value);
  const digits = measure === "seconds" || measure === "mib" ? 1 : 2, pairs = [];
  // A joint classifier is the same whatever the tasks and their order.
  const same = (a, b) => a.stream === "joint" || b.stream === "joint" || a.stream === b.stream && a.seed === b.seed;
  for (const a of runs.filter(run => run.name === left)) {
    const b = runs.find(run => run.name === right && run.data === a.data && same(a, run));
    if (b && a[measure] !== null && b[measure] !== null) pairs.push([a, a[measure], b[measure]]);
  }
  const table = document.getElementById("pairs");
  table.replaceChildren();
  const verdict = document.getElementById("verdict");
  if (pairs.length === 0) {
    verdict.textContent = "They were not measured on the same data.";
    return;
  }
  const head = table.createTHead().insertRow(), body = table.createTBody();
  ["data", "tasks", "seed", left, right, "difference"].forEach(text => head.append(cell("th", text)));
  for (const [run, a, b] of pairs) {
    const row = body.insertRow();
    [run.data, run.stream, run.seed ?? ""].forEach(text => row.append(cell("td", text)));
    [a, b, a - b].forEach((v, i) => row.append(cell("td", (i === 2 && v > 0 ? "+" : "") + v.toFixed(digits), v)));
  }
  sortable(table);
  const gaps = pairs.map(([, a, b]) => a - b), mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const above = gaps.filter(gap => gap > 0).length, below = gaps.filter(gap => gap < 0).length;
  verdict.textContent = `${left} minus ${right}: ${mean > 0 ? "+" : ""}${mean.toFixed(digits)} on average over ` +
    `${gaps.length} pairs; higher in ${above}, lower in ${below}, equal in ${gaps.length - above - below}.`;
}

document.querySelectorAll("table.sortable").forEach(table => { if (table.tHead) sortable(table); });
document.querySelectorAll("svg.chart").forEach(svg => svg.classList.contains("matrix") ? matrix(svg) : chart(svg));
const names = [...new Set(runs.map(run => run.name))];
if (names.length < 2) {
  document.getElementById("compare").hidden = true;
} else {
  for (const [id, chosen] of [["left", 0], ["right", 1]]) {
    const select = document.getElementById(id);
    names.forEach(name => select.append(new Option(name)));
    select.selectedIndex = chosen;
  }
  ["left", "right", "measure"].forEach(id => document.getElementById(id).addEventListener("change", compare));
  compare();
}
function open_run() {
  const run = document.getElementById(location.hash.slice(1));
  if (run && run.tagName === "DETAILS") run.open = true;
}
addEventListener("hashchange", open_run);
open_run();
