// Line charts in SVG. A curve is {label, color, points: [[steps, seconds, value], ...], style, spread};
// spread, where there is one, has a point for each of points: how far the values lie around it.
// a limit, drawn across, is {value, label, kind}, good or bad.

import { short, span } from "./format.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const STEPS = 0, SECONDS = 1, VALUE = 2;
const FEW = 3;        // values that may lie outside of a chart, on either side
const FAR = 4;        // heights of a chart by which they do

function element(name, attributes, parent) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

/** Round numbers between low and high: about as many as asked for. */
export function ticks(low, high, about) {
  const rough = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

/** From which value to which a chart goes: a few that lie far from all others do not flatten it. */
export function extent(values) {
  const sorted = Float64Array.from(values).sort();
  const last = sorted.length - 1;
  const few = last < 7 ? 0 : Math.min(FEW, Math.ceil(sorted.length / 20));
  const [low, high] = [sorted[few], sorted[last - few]];
  const far = FAR * Math.max(high - low, Math.abs(sorted[last >> 1]) / 2);
  return [sorted.find((value) => value >= low - far), sorted.findLast((value) => value <= high + far)];
}

/** Ticks on a time axis, all in one unit: whole minutes and hours rather than hundreds of seconds. */
function timeTicks(low, high, about) {
  const [unit, name] = high < 180 ? [1, "s"] : high < 7200 ? [60, "min"] : [3600, "h"];
  return ticks(low / unit, high / unit, about).map((tick) => [tick * unit, tick ? `${short(tick)} ${name}` : "0"]);
}

export class Chart {
  /** `bare`: the curve alone, as in a tile; `zero`: the vertical axis begins at 0. */
  constructor(home, { bare = false, zero = false, format = short, legend = false } = {}) {
    Object.assign(this, { home, bare, zero, format, curves: [], axis: STEPS, limit: null });
    this.svg = element("svg", { "aria-hidden": "true" }, home);
    this.tip = home.appendChild(document.createElement("div"));
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.nothing = home.appendChild(document.createElement("p"));
    this.nothing.className = "nothing";
    this.legend = legend ? home.appendChild(document.createElement("div")) : null;
    if (legend) this.legend.className = "legend";
    new ResizeObserver(() => this.later()).observe(home);
    home.addEventListener("pointermove", (event) => this.point(event));
    home.addEventListener("pointerleave", () => this.leave());
  }

  show(curves, { axis = this.axis, limit = null, nothing = "nothing yet" } = {}) {
    Object.assign(this, { curves, axis, limit });
    this.nothing.textContent = this.bare ? "" : nothing;
    this.later();
  }

  later() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.draw(); });
  }

  draw() {
    const { width, height } = this.home.getBoundingClientRect();
    this.svg.replaceChildren();
    const shown = this.curves.filter((curve) => curve.points.length > 0);
    this.nothing.hidden = shown.length > 0;
    this.drawLegend(shown);
    if (!shown.length || width < 40 || height < 20) { this.scale = null; return; }
    this.measure(shown, width, height);
    if (!this.bare) this.drawAxes();
    const { margin, w, h } = this.scale;
    const id = `inside-${this.home.id || this.home.parentElement.id}`;
    const clip = element("clipPath", { id }, element("defs", {}, this.svg));
    element("rect", { x: margin.left - 4, y: margin.top - 1, width: w + 8, height: h + 2 }, clip);
    const inside = element("g", { "clip-path": `url(#${id})` }, this.svg);
    for (const curve of shown) this.drawCurve(curve, inside);
    if (!this.bare) for (const curve of shown) this.drawOutside(curve);
    this.cursor = element("line", { class: "cursor", visibility: "hidden" }, this.svg);
  }

  measure(shown, width, height) {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { points, spread } of shown) {
      const around = points.map((_, i) => spread?.[i]?.[VALUE] ?? 0);
      left = Math.min(left, points[0][this.axis]); right = Math.max(right, points.at(-1)[this.axis]);
      low = Math.min(low, extent(points.map((point, i) => point[VALUE] - around[i]))[0]);
      high = Math.max(high, extent(points.map((point, i) => point[VALUE] + around[i]))[1]);
    }
    if (this.limit) [low, high] = [Math.min(low, this.limit.value), Math.max(high, this.limit.value)];
    if (this.zero) low = Math.min(0, low);
    if (!this.bare) left = Math.min(left, 0);
    if (high === low) { high += Math.abs(high) * 0.1 || 1; if (!this.zero) low -= Math.abs(low) * 0.1 || 1; }
    const room = (high - low) * 0.06;
    high += room;
    if (!(this.zero && low === 0)) low -= room;
    if (right === left) right = left + 1;
    const margin = this.bare ? { left: 1, right: 1, top: 3, bottom: 2 } : { left: 48, right: 12, top: 14, bottom: 24 };
    const [w, h] = [width - margin.left - margin.right, height - margin.top - margin.bottom];
    this.scale = {
      left, right, low, high, margin, w, h,
      x: (value) => margin.left + ((value - left) / (right - left)) * w,
      y: (value) => margin.top + (1 - (value - low) / (high - low)) * h,
    };
  }

  drawAxes() {
    const { left, right, low, high, margin, w, h, x, y } = this.scale;
    for (const tick of ticks(low, high, Math.max(3, h / 50))) {
      element("line", { class: "grid", x1: margin.left, x2: margin.left + w, y1: y(tick), y2: y(tick) }, this.svg);
      element("text", { x: margin.left - 7, y: y(tick) + 4, "text-anchor": "end" }, this.svg).textContent = this.format(tick);
    }
    const marks = this.axis === SECONDS ? timeTicks(left, right, w / 110) : ticks(left, right, w / 110).map((tick) => [tick, short(tick)]);
    for (const [tick, label] of marks) {
      const anchor = x(tick) > margin.left + w - 18 ? "end" : "middle";
      element("text", { x: x(tick), y: margin.top + h + 18, "text-anchor": anchor }, this.svg).textContent = label;
    }
    if (this.limit) {
      const at = y(this.limit.value);
      element("line", { class: `limit ${this.limit.kind}`, x1: margin.left, x2: margin.left + w, y1: at, y2: at }, this.svg);
      element("text", { class: `mark ${this.limit.kind}`, x: margin.left + 4, y: at - 4 }, this.svg).textContent = this.limit.label;
    }
  }

  /** Arrows at the edge for values beyond it; the farthest says how far. */
  drawOutside({ points, color }) {
    const { low, high, margin, w, h, x } = this.scale;
    for (const [beyond, edge, way] of [[(value) => value - high, margin.top, 1], [(value) => low - value, margin.top + h, -1]]) {
      const out = points.filter((point) => beyond(point[VALUE]) > 0);
      for (const point of out) {
        const at = x(point[this.axis]);
        element("path", { class: "outside", fill: color, d: `M${at},${edge}l-5,${8 * way}h10Z` }, this.svg);
      }
      if (!out.length) continue;
      const farthest = out.reduce((a, b) => (beyond(b[VALUE]) > beyond(a[VALUE]) ? b : a));
      const at = x(farthest[this.axis]), right = at > margin.left + w - 70;
      const place = { class: "outside", x: at + (right ? -9 : 9), y: edge + (way > 0 ? 9 : -2), "text-anchor": right ? "end" : "start" };
      element("text", place, this.svg).textContent = this.format(farthest[VALUE]);
    }
  }

  drawCurve({ points, color, style = "", spread }, home) {
    const { x, y, margin, h } = this.scale;
    if (spread?.length === points.length && points.length > 1) {
      const edge = (side) => points.map((point, i) => `${x(point[this.axis]).toFixed(1)},${y(point[VALUE] + side * spread[i][VALUE]).toFixed(1)}`);
      element("path", { class: "area", fill: color, d: `M${[...edge(1), ...edge(-1).reverse()].join("L")}Z` }, home);
    }
    const at = (point) => `${x(point[this.axis]).toFixed(1)},${y(point[VALUE]).toFixed(1)}`;
    const path = `M${points.map(at).join("L")}`;
    if (style.includes("area")) {
      const [first, last] = [points[0], points.at(-1)].map((point) => x(point[this.axis]).toFixed(1));
      element("path", { class: "area", fill: color, d: `${path}L${last},${margin.top + h}L${first},${margin.top + h}Z` }, home);
    }
    element("path", { class: style.includes("thin") ? "line thin" : "line", stroke: color, d: path }, home);
    if ((style.includes("dots") && points.length < 120) || points.length === 1)
      for (const point of points)
        element("circle", { cx: x(point[this.axis]), cy: y(point[VALUE]), r: 3, fill: color }, home);
  }

  drawLegend(shown) {
    if (!this.legend) return;
    this.legend.replaceChildren(...shown.map(({ label, color }) => {
      const entry = document.createElement("span");
      const mark = entry.appendChild(document.createElement("i"));
      mark.style.background = color;
      entry.append(label);
      return entry;
    }));
  }

  /** What the curves are where the pointer is. */
  point(event) {
    if (!this.scale || this.bare) return;
    const { left, right, margin, w, h, x } = this.scale;
    const across = event.clientX - this.home.getBoundingClientRect().left;
    const where = left + ((across - margin.left) / w) * (right - left);
    const rows = this.curves.filter(({ points }) => points.length).map((curve) => ({ curve, near: nearest(curve.points, this.axis, where) }));
    if (!rows.length || across < margin.left) return this.leave();
    const at = x(rows[0].near[this.axis]);
    for (const [key, value] of Object.entries({ x1: at, x2: at, y1: margin.top, y2: margin.top + h, visibility: "visible" }))
      this.cursor?.setAttribute(key, value);
    const near = rows[0].near;
    this.tip.replaceChildren(line(`${short(near[STEPS])} steps`, span(near[SECONDS])),
      ...rows.map(({ curve, near: found }) => line(curve.label, this.format(found[VALUE]))));
    this.tip.hidden = false;
    const beyond = at + this.tip.offsetWidth + 24 > margin.left + w;
    this.tip.style.left = `${beyond ? at - this.tip.offsetWidth - 12 : at + 12}px`;
    this.tip.style.top = `${margin.top + 22}px`;
  }

  leave() {
    this.tip.hidden = true;
    this.cursor?.setAttribute("visibility", "hidden");
  }
}

function line(label, value) {
  const row = document.createElement("div");
  row.textContent = label;
  const bold = document.createElement("b");
  bold.textContent = value;
  row.append(bold);
  return row;
}

function nearest(points, axis, where) {
  let [low, high] = [0, points.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][axis] < where) low = middle; else high = middle;
  }
  return where - points[low][axis] < points[high][axis] - where ? points[low] : points[high];
}
