// Draws the token map: servers as groups, tools as rectangles that lead to their pages.
import { init } from "../vendor/echarts/echarts.min.js";
import { channelsOf } from "./colours.js";

const LEAST_LABEL_SIDE_PX = 46;

function rgb(channels) {
  return `rgb(${channels.map(Math.round).join(",")})`;
}

function mix(from, to, share) {
  return from.map((channel, i) => channel + (to[i] - channel) * share);
}

function isLight([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 128;
}

function walk(areas, visit) {
  for (const area of areas) {
    visit(area);
    walk(area.children, visit);
  }
}

// A server too small for its tools is drawn as one rectangle: it loads if one of them does.
function isDeferred(area) {
  if (!area.children.length) return area.is_deferred;
  const fates = area.children.map(isDeferred);
  return fates.find((fate) => fate === false) ?? fates.find((fate) => fate) ?? null;
}

// What loads is in the accent's colour, what waits is grey; the larger a tool, the stronger its colour.
// The rest, and what is not decided, is pale. A name is written only where there is room for it.
function paint(areas, element) {
  const accent = channelsOf("--accent");
  const surface = channelsOf("--surface");
  const neutral = channelsOf("--line");
  const waiting = channelsOf("--map-waits");
  let largest = 1;
  let total = 1;
  walk(areas, (area) => { if (!area.children.length && !area.is_rest) largest = Math.max(largest, area.value); });
  for (const area of areas) total += area.value;
  const pixelsPerToken = (element.clientWidth * element.clientHeight) / total;
  walk(areas, (area) => {
    const strength = 0.3 + 0.7 * Math.sqrt(Math.min(area.value / largest, 1));
    const fate = isDeferred(area);
    const hue = fate ? mix(surface, waiting, 0.45 + 0.55 * strength) : mix(surface, accent, strength);
    const colour = fate === null ? neutral : hue;
    area.itemStyle = { color: rgb(colour) };
    area.label = {
      show: Math.sqrt(area.value * pixelsPerToken) >= LEAST_LABEL_SIDE_PX,
      color: isLight(colour) ? "#161b26" : "#ffffff",
    };
  });
  return areas;
}

function fateOf(area) {
  if (!area || area.is_deferred === null || area.is_deferred === undefined) return "";
  return area.is_deferred ? ", deferred" : ", loads";
}

function optionsFor(areas, element) {
  const [surface, ink, line] = ["--surface", "--ink", "--line"].map((name) => rgb(channelsOf(name)));
  return {
    animation: false,
    aria: { enabled: true, label: { description: "Tokens by server and tool; the tables below say the same." } },
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    // Rich text is drawn on the canvas; an HTML tooltip would need inline styles, which the policy forbids.
    tooltip: {
      renderMode: "richText",
      backgroundColor: surface,
      borderColor: line,
      textStyle: { color: ink, fontSize: 12 },
      formatter: ({ treePathInfo, value, data }) =>
        `${treePathInfo.slice(1).map((step) => step.name).join(" › ")}\n${value.toLocaleString("en")} tokens${fateOf(data)}`,
    },
    series: [
      {
        type: "treemap",
        data: paint(areas, element),
        left: 0,
        right: 0,
        top: 0,
        bottom: 0,
        roam: false,
        nodeClick: false,
        cursor: "pointer",
        breadcrumb: { show: false },
        label: { fontSize: 11, overflow: "truncate", position: "insideTopLeft", padding: [3, 3, 0, 3] },
        upperLabel: { show: true, height: 22, color: ink, fontSize: 12, fontWeight: 600, padding: [0, 2] },
        emphasis: { itemStyle: { borderColor: ink }, upperLabel: { color: ink } },
        levels: [
          { itemStyle: { borderColor: surface, borderWidth: 0, gapWidth: 8 }, upperLabel: { show: false } },
          { itemStyle: { borderColor: surface, borderWidth: 1, gapWidth: 2 } },
          { itemStyle: { borderWidth: 0, gapWidth: 2, borderRadius: 3 } },
        ],
      },
    ],
  };
}

function drawTreemap(element) {
  const source = document.getElementById(element.dataset.treemap).textContent;
  element.hidden = false;
  const chart = init(element);
  let drawnSize = "";
  const sizeNow = () => `${element.clientWidth} ${element.clientHeight}`;
  // From a clean sheet each time: the chart keeps and alters the data it was given.
  const draw = () => {
    drawnSize = sizeNow();
    chart.clear();
    chart.resize();
    chart.setOption(optionsFor(JSON.parse(source), element));
  };
  draw();
  chart.on("click", ({ data }) => { if (data && data.url) window.location.assign(data.url); });
  new ResizeObserver(() => { if (sizeNow() !== drawnSize) draw(); }).observe(element);
  const drawAgain = () => { if (element.isConnected) draw(); };
  document.addEventListener("theme-chosen", drawAgain);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
}

// Once for each map: the page's own, and those that take its place while somebody looks.
function drawNewMaps() {
  for (const element of document.querySelectorAll("[data-treemap]:not([data-drawn])")) {
    element.dataset.drawn = "";
    drawTreemap(element);
  }
}

drawNewMaps();
document.addEventListener("htmx:oobAfterSwap", drawNewMaps);
