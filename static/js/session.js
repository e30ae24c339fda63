// Draws a session's tokens by turn from the table beside the chart, and draws them anew when that is replaced.
import { init } from "../vendor/echarts/echarts.min.js";
import { colourOf } from "./colours.js";

const SYMBOLS_UP_TO_POINTS = 30;

let chart = null;

function readPoints(element) {
  const rows = document.querySelectorAll(`#${element.dataset.course} tbody tr`);
  return [...rows].map((row) => ["turn", "sent", "full"].map((name) => Number(row.dataset[name])));
}

function lineOf(name, column, colour, points, more) {
  return {
    name,
    type: "line",
    step: "end",
    data: points.map((point) => [point[0], point[column]]),
    symbol: points.length <= SYMBOLS_UP_TO_POINTS ? "circle" : "none",
    symbolSize: 5,
    lineStyle: { width: 2, color: colour },
    itemStyle: { color: colour },
    ...more,
  };
}

function tellTurn(lines) {
  const [turn] = lines[0].value;
  const told = lines.map((line) => `${line.seriesName}  ${line.value[1].toLocaleString("en")} tokens`);
  return [`Turn ${turn}`, ...told].join("\n");
}

function axisOf(muted, line, more) {
  return {
    type: "value",
    axisLabel: { color: muted, fontSize: 11, formatter: (value) => value.toLocaleString("en") },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: line } },
    ...more,
  };
}

// Where everything loaded is many times the session, the chart is of the session alone; the legend says the other number.
function isSessionAlone(element) {
  return document.getElementById(element.dataset.course).dataset.scale === "session";
}

function optionsFor(points, isAlone) {
  const [accent, eager, ink, muted, line, surface] = [
    "--accent", "--muted", "--ink", "--muted", "--line", "--surface",
  ].map(colourOf);
  const [first, last] = [points[0][0], points.at(-1)[0]];
  return {
    animation: false,
    aria: { enabled: true, label: { description: "Tokens by turn; the table below says the same." } },
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    grid: { left: 8, right: 16, top: 12, bottom: 4, containLabel: true },
    // Drawn on the canvas: an HTML tooltip would need inline styles, which the policy forbids.
    tooltip: {
      trigger: "axis",
      renderMode: "richText",
      backgroundColor: surface,
      borderColor: line,
      textStyle: { color: ink, fontSize: 12 },
      axisPointer: { lineStyle: { color: muted } },
      formatter: tellTurn,
    },
    xAxis: axisOf(muted, line, {
      min: first, max: Math.max(last, first + 1), minInterval: 1, splitLine: { show: false },
    }),
    yAxis: axisOf(muted, line, { min: 0, splitNumber: 3 }),
    series: [
      ...(isAlone ? [] : [
        lineOf("Everything loaded", 2, eager, points, { lineStyle: { width: 2, type: "dashed", color: eager } }),
      ]),
      lineOf("This session", 1, accent, points, { areaStyle: { color: accent, opacity: 0.12 } }),
    ],
  };
}

function draw() {
  const element = document.querySelector("[data-course]");
  if (!element) return;
  const points = readPoints(element);
  if (!points.length) return;
  element.hidden = false;
  if (!chart || chart.getDom() !== element) {
    if (chart) chart.dispose();
    chart = init(element);
    new ResizeObserver(() => chart.resize()).observe(element);
  }
  chart.setOption(optionsFor(points, isSessionAlone(element)), true);
}

document.addEventListener("htmx:afterSettle", draw);
document.addEventListener("theme-chosen", draw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
