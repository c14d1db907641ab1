"use strict";
const runs = JSON.parse(document.getElementById("data").textContent).runs;
const tip = document.getElementById("tip");

// What a cell is sorted by: its value if it carries one, its number if it is one, its text.
function key(cell) {
  const text = cell === undefined ? "" : cell.dataset.v ?? cell.textContent.trim();
  if (text === "" || text === "-") return null;
  if (text.startsWith("\u221e")) return Infinity;
  const number = parseFloat(text.replaceAll(",", ""));
  return /^[-+]?[\d.]/.test(text) && !Number.isNaN(number) ? number : text;
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

// Heads become buttons, which the keyboard reaches.
function sortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.addEventListener("click", () => sort(table, column, head.getAttribute("aria-sort") === "ascending"));
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
  const points = [...svg.querySelectorAll("g.series")].flatMap(({dataset}) => {
    const values = dataset.v.split(" ");
    return dataset.at.split(" ").map((at, i) => [...at.split(",").map(Number), dataset.name, values[i].split(":")]);
  });
  svg.addEventListener("mousemove", event => {
    const [x, y] = place(svg, event);
    let best = null, least = 400;
    for (const point of points) {
      const distance = (point[0] - x) ** 2 + (point[1] - y) ** 2;
      // Of points at one place, that of the line drawn last: it lies above the others.
      if (distance <= least) [best, least] = [point, distance];
    }
    if (best) show(`${best[2]}: ${best[3][1]} at ${best[3][0]}`, event); else tip.hidden = true;
  });
  svg.addEventListener("mouseleave", () => { tip.hidden = true; });
}

function matrix(svg) {
  const rows = svg.dataset.values.split(";").map(row => row.split(","));
  const [left, top, side] = svg.dataset.box.split(" ").map(Number);
  svg.addEventListener("mousemove", event => {
    const [x, y] = place(svg, event), count = rows.length;
    const column = Math.floor((x - left) / side * count), row = Math.floor((y - top) / side * count);
    const value = rows[row] && rows[row][column];
    if (value) show(`task ${row + 1} after task ${column + 1}: ${value}%`, event); else tip.hidden = true;
  });
  svg.addEventListener("mouseleave", () => { tip.hidden = true; });
}

function cell(tag, text, value, word) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (word) element.className = "word";
  if (value !== undefined) element.dataset.v = value;
  return element;
}

function compare() {
  const [left, right, measure] = ["left", "right", "measure"].map(id => document.getElementById(id).value);
  const digits = measure === "seconds" || measure === "mib" ? 1 : 2, pairs = [];
  // A joint classifier is the same whatever the tasks and their order.
  const same = (a, b) => a.stream === "joint" || b.stream === "joint" || a.stream === b.stream && a.seed === b.seed && a.lift_seed === b.lift_seed;
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
  ["data", "tasks", "seed", left, right, "difference"].forEach((text, i) => head.append(cell("th", text, undefined, i < 2)));
  for (const [run, a, b] of pairs) {
    const row = body.insertRow();
    [run.data, run.stream, run.seed ?? ""].forEach((text, i) => row.append(cell("td", text, undefined, i < 2)));
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
if (names.length > 1) {
  document.getElementById("compare").hidden = false;
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
