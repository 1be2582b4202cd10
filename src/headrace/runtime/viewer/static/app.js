// The page: what the server says arrives by websocket, and is shown. See ../server.py for messages.

import { Chart } from "./chart.js";
import { bytes, clock, percent, short } from "./format.js";
import { Screen } from "./screen.js";

const RATES = ["sampling", "update", "update_frames", "evaluation"];
const $ = (selector) => document.querySelector(selector);
const set = (selector, text) => { $(selector).textContent = text; };

const curves = {};        // name -> [[steps, seconds, value], ...]
const editions = {};        // name -> which edition of the curve we have
let axis = 0;             // 0: by environment steps, 1: by seconds
let moment = null;        // the newest status
let metric = null;        // the curve of the learner that is shown
let goal = {};            // of the run: total_steps, until
let socket = null;

const charts = {
  returns: new Chart($("#returns"), { legend: true }),
  ring: new Chart($("#ring .chart"), { zero: true, format: percent }),
  staleness: new Chart($("#staleness .chart"), { zero: true, legend: true }),
  metric: new Chart($("#metric .chart")),
  ...Object.fromEntries(RATES.map((name) => [name, new Chart($(`#rate-${name} .spark`), { bare: true, zero: true })])),
};
const screen = new Screen((message) => tell(message));

function tell(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function connect(wait = 500) {
  socket = new WebSocket(`ws://${location.host}/live`);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => { wait = 500; $("#banner").hidden = true; attend(); };
  socket.onclose = () => {
    set("#banner", "The viewer has ended, as it does with its run, or cannot be reached. What it showed last stays here. To see the run again: headrace watch RUN");
    $("#banner").hidden = false;
    showState("gone");
    setTimeout(() => connect(Math.min(2 * wait, 10000)), wait);
  };
  socket.onmessage = ({ data }) => {
    if (data instanceof ArrayBuffer) { screen.frame(data); return; }
    const message = JSON.parse(data);
    if (message.type === "run") showRun(message);
    else if (message.type === "news") showNews(message);
    else if (message.type === "player") screen.player(message);
  };
}

/** The agent plays only for pages that are looked at. */
function attend() { tell({ visible: document.visibilityState === "visible" }); }

function showRun(run) {
  document.title = `${run.name} · Headrace`;
  set("#run-name", run.name);
  set("#run-kind", [run.env, run.algo, run.mode].filter(Boolean).join(" · "));
  goal = run.goal;
  const rows = Object.entries(run.config).map(([name, value]) => {
    const row = document.createElement("div");
    row.append(Object.assign(document.createElement("span"), { textContent: name }));
    row.append(Object.assign(document.createElement("b"), { textContent: value }));
    return row;
  });
  $("#config").replaceChildren(...rows);
}

function showNews(news) {
  for (const [name, { edition, points }] of Object.entries(news.curves)) {
    if (editions[name] !== edition) { curves[name] = []; editions[name] = edition; }
    (curves[name] ??= []).push(...points);
  }
  moment = news.moment;
  if (moment) showMoment();
  if (news.processes) showProcesses(news.processes);
  if (news.events) showEvents(news.events);
  if (news.videos) showVideos(news.videos);
  showCurves();
  document.body.dataset.news = Number(document.body.dataset.news ?? 0) + 1;
}

function showState(state) {
  $("#state").dataset.state = state;
  set("#state", state === "gone" ? "viewer gone" : state);
  $("#wheel").classList.toggle("turning", state === "running");
  document.body.classList.toggle("over", ["finished", "failed", "recorded", "gone", "silent"].includes(state));
}

function showMoment() {
  showState(moment.state);
  set("#env-steps", short(moment.env_steps));
  set("#episodes", short(moment.episodes));
  $("#episodes").parentElement.hidden = moment.episodes === null;
  set("#updates", short(moment.updates));
  set("#eval-return", short(moment.eval_return));
  set("#best-return", short(moment.best_return));
  set("#elapsed", clock(moment.elapsed));
  $("#progress").hidden = !goal.total_steps;
  $("#progress i").style.width = `${Math.min(100, (100 * moment.env_steps) / goal.total_steps)}%`;
  for (const name of RATES) {
    const rate = moment.rates[name];
    $(`#rate-${name}`).hidden = rate === null;
    set(`#rate-${name} .value`, short(rate));
  }
  const fill = moment.ring_fill;
  $("#ring").hidden = fill === null;
  set("#ring .value", fill === null ? "–" : percent(fill));
  set("#ring-note", moment.ring_capacity ? `of ${short(moment.ring_capacity)} transitions` : "");
  $("#ring .gauge i").style.width = `${100 * (fill ?? 0)}%`;
  const mean = moment.staleness_mean, bound = moment.staleness_bound;
  $("#staleness").hidden = mean === null;
  set("#staleness .value", short(mean));
  set("#staleness-note", ["mean", moment.staleness_max === null ? "" : `at most ${short(moment.staleness_max)}`,
    bound === null ? "" : `bound ${short(bound)}`].filter(Boolean).join(", "));
}

const color = (name) => `var(--${name})`;
const curve = (name, label, hue, style) => ({ label, color: color(hue), style, points: curves[name] ?? [] });
const limit = (value, label, kind) => (value === null || value === undefined ? null : { value, label, kind });

function showCurves() {
  const evaluation = { ...curve("eval_return", "evaluation", "eval", "dots"), spread: curves.eval_spread };
  charts.returns.show([curve("train_return", "training", "train", "thin"), evaluation],
    { axis, limit: limit(goal.until, "goal", "good"), nothing: "no episode has ended yet" });
  for (const name of RATES) charts[name].show([curve(name, name, "accent", "area")], { axis: 1 });
  charts.ring.show([curve("ring_fill", "full", "accent", "area")], { axis: 1, nothing: "" });
  charts.staleness.show([curve("staleness_max", "largest", "train", "thin"), curve("staleness_mean", "mean", "accent")],
    { axis: 1, limit: limit(moment?.staleness_bound, "bound", "bad"), nothing: "" });
  showMetric();
}

function showMetric() {
  const names = Object.keys(curves).filter((name) => name.includes("/")).sort();
  const select = $("#metric-name");
  if (select.options.length !== names.length) {
    metric ??= names.find((name) => name.startsWith("loss/")) ?? names[0];
    select.replaceChildren(...names.map((name) => new Option(name, name, false, name === metric)));
  }
  $("#metric").hidden = names.length === 0;
  const points = curves[metric] ?? [];
  set("#metric .value", short(points.at(-1)?.[2]));
  charts.metric.show([curve(metric, metric, "accent")], { axis });
}

function showProcesses(processes) {
  $(".processes").hidden = processes.length === 0;
  const rows = processes.map((one) => {
    const row = document.createElement("tr");
    const cell = (text, kind = "") => Object.assign(row.insertCell(), { textContent: text, className: kind });
    cell(one.count > 1 ? `${one.role} ${one.index}` : one.role);
    cell(one.state, "state").dataset.state = one.state;
    cell(one.pid || "–", "number");
    const cpu = cell("").appendChild(Object.assign(document.createElement("div"), { className: "cpu" }));
    cpu.append(Object.assign(document.createElement("span"), { textContent: percent(one.cpu) }), document.createElement("i"));
    cpu.style.setProperty("--share", `${Math.min(100, 100 * one.cpu)}%`);
    cell(bytes(one.memory), "number");
    cell(one.restarts, "number").title = one.reason;
    row.title = one.reason;
    return row;
  });
  $("#processes").replaceChildren(...rows);
  const busy = processes.reduce((sum, one) => sum + one.cpu, 0);
  set("#process-note", busy > 0 ? `${short(busy)} processors busy` : "");
}

function showEvents(events) {
  $(".events").hidden = events.length === 0;
  $("#events").replaceChildren(...events.toReversed().map(({ time, text }) => {
    const item = document.createElement("li");
    const when = item.appendChild(document.createElement("time"));
    when.textContent = new Date(1000 * time).toLocaleTimeString("en-GB");
    item.append(Object.assign(document.createElement("span"), { textContent: text }));
    return item;
  }));
}

function showVideos(videos) {
  $(".videos").hidden = videos.length === 0;
  const known = new Map([...$("#videos").children].map((figure) => [figure.dataset.name, figure]));
  $("#videos").replaceChildren(...videos.map(({ name, env_steps }) => {
    if (known.has(name)) return known.get(name);  // it goes on playing
    const figure = document.createElement("figure");
    figure.dataset.name = name;
    const said = `after ${short(env_steps)} steps`;
    figure.append(Object.assign(new Image(), { src: `videos/${name}`, alt: said, loading: "lazy" }));
    figure.append(Object.assign(document.createElement("figcaption"), { textContent: said }));
    return figure;
  }));
}

$("#axis").addEventListener("click", ({ target }) => {
  if (!target.dataset.axis) return;
  axis = Number(target.dataset.axis);
  for (const button of $("#axis").children) button.setAttribute("aria-pressed", button === target);
  showCurves();
});
$("#metric-name").addEventListener("change", ({ target }) => { metric = target.value; showMetric(); });

const system = matchMedia("(prefers-color-scheme: dark)");
function theme(chosen) { document.documentElement.dataset.theme = chosen ?? (system.matches ? "dark" : "light"); }
function remembered() { try { return localStorage.getItem("theme"); } catch { return null; } }
$("#theme").addEventListener("click", () => {
  theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  try { localStorage.setItem("theme", document.documentElement.dataset.theme); } catch { /* private window */ }
});
system.addEventListener("change", () => theme(remembered()));
theme(remembered());

document.addEventListener("visibilitychange", attend);
connect();
