// Draws the token map: servers as groups, tools as rectangles that lead to their pages.
import { init } from "../vendor/echarts/echarts.min.js";
import { channelsOf } from "./colours.js";

const LABEL_FONT_PX = 12;
const LABEL_PADDING_PX = 4;
const LEAST_LABEL_CHARS = 3;

function rgb(channels) {
  return `rgb(${channels.map(Math.round).join(",")})`;
}

function mix(from, to, share) {
  return from.map((channel, i) => channel + (to[i] - channel) * share);
}

// Black or white, whichever reads better on the colour: that is at least 4.5 to 1 on any.
function inkOn(channels) {
  const [red, green, blue] = channels.map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
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

// What loads is in the accent's colour, what waits is grey; the larger a rectangle, the stronger its colour.
// What is not decided is pale.
function paint(areas) {
  const accent = channelsOf("--accent");
  const surface = channelsOf("--surface");
  const neutral = channelsOf("--line");
  const waiting = channelsOf("--map-waits");
  let largest = 1;
  walk(areas, (area) => { if (!area.children.length) largest = Math.max(largest, area.value); });
  walk(areas, (area) => {
    const strength = 0.3 + 0.7 * Math.sqrt(Math.min(area.value / largest, 1));
    const fate = isDeferred(area);
    const hue = fate ? mix(surface, waiting, 0.45 + 0.55 * strength) : mix(surface, accent, strength);
    const colour = fate === null ? neutral : hue;
    area.itemStyle = { color: rgb(colour) };
    area.label = { show: false, color: inkOn(colour) };
  });
  return areas;
}

// As much of a name as its rectangle has room for, ending in dots where it is cut.
function fitName(name, width, measure) {
  const room = width - 2 * LABEL_PADDING_PX;
  if (measure(name) <= room) return name;
  let cut = name.length - 1;
  while (cut >= LEAST_LABEL_CHARS && measure(`${name.slice(0, cut)}…`) > room) cut -= 1;
  return cut >= LEAST_LABEL_CHARS ? `${name.slice(0, cut)}…` : "";
}

// The rectangles are known once they are laid out: then each gets the label that fits.
function labelAreas(chart, areas) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${LABEL_FONT_PX}px ${getComputedStyle(document.body).fontFamily}`;
  const measure = (text) => pen.measureText(text).width;
  const places = new Map();
  chart.getModel().getSeriesByIndex(0).getData().tree.root.eachNode((node) => {
    places.set(node.getModel().option?.place, node.getLayout());
  });
  walk(areas, (area) => {
    const { width = 0, height = 0 } = places.get(area.place) ?? {};
    const text = height >= LABEL_FONT_PX + 2 * LABEL_PADDING_PX ? fitName(area.name, width, measure) : "";
    area.label = { ...area.label, show: text !== "", formatter: () => text };
  });
}

function fateOf(area) {
  if (!area || area.is_deferred === null || area.is_deferred === undefined) return "";
  return area.is_deferred ? ", deferred" : ", loads";
}

// Servers stand apart where their tools are drawn in them.
function levelsOf(areas, surface) {
  const around = { borderColor: surface, borderWidth: 0 };
  const leaf = { itemStyle: { borderWidth: 0, gapWidth: 2, borderRadius: 3 } };
  if (areas.every((area) => !area.children.length)) {
    return [{ itemStyle: { ...around, gapWidth: 2 }, upperLabel: { show: false } }, leaf];
  }
  return [
    { itemStyle: { ...around, gapWidth: 8 }, upperLabel: { show: false } },
    { itemStyle: { ...around, borderWidth: 1, gapWidth: 2 } },
    leaf,
  ];
}

function optionsFor(areas) {
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
        data: areas,
        left: 0,
        right: 0,
        top: 0,
        bottom: 0,
        roam: false,
        nodeClick: false,
        cursor: "pointer",
        breadcrumb: { show: false },
        label: { fontSize: LABEL_FONT_PX, overflow: "none", position: "insideTopLeft", padding: [6, LABEL_PADDING_PX, 0, LABEL_PADDING_PX] },
        upperLabel: { show: true, height: 22, color: ink, fontSize: 12, fontWeight: 600, padding: [0, 2], overflow: "truncate" },
        // The colour stays under the pointer: it says how the tool loads.
        emphasis: { itemStyle: { color: "inherit", borderColor: ink, borderWidth: 2 }, upperLabel: { color: ink } },
        levels: levelsOf(areas, surface),
      },
    ],
  };
}

function drawTreemap(element) {
  const card = element.closest("section");
  const [words, path] = ["[data-map-words]", "[data-map-path]"].map((part) => card.querySelector(part));
  const whole = document.getElementById(element.dataset.treemap).textContent;
  let source = whole;
  element.hidden = false;
  const chart = init(element);
  let drawnSize = "";
  const sizeNow = () => `${element.clientWidth} ${element.clientHeight}`;
  // From a clean sheet each time: the chart keeps and alters the data it was given.
  const draw = () => {
    drawnSize = sizeNow();
    const areas = paint(JSON.parse(source));
    let place = 0;
    walk(areas, (area) => { area.place = place; place += 1; });
    chart.clear();
    chart.resize();
    chart.setOption(optionsFor(areas));
    labelAreas(chart, areas);
    chart.setOption({ series: [{ data: areas }] });
  };
  const show = (text, server) => {
    source = text;
    words.hidden = Boolean(server);
    path.hidden = !server;
    if (server) Object.assign(path.querySelector("a"), { href: server.url, textContent: server.name });
    draw();
  };
  const open = async (server) => {
    const answer = await fetch(server.opens);
    if (answer.ok) show(await answer.text(), server);
    else window.location.assign(server.url);
  };
  draw();
  chart.on("click", ({ data }) => {
    if (data?.opens) open(data);
    else if (data?.url) window.location.assign(data.url);
  });
  path.querySelector("[data-map-back]").addEventListener("click", () => show(whole, null));
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
