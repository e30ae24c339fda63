// Draws the token map: servers as groups, tools as rectangles that lead to their pages.
"use strict";

function colourOf(variable) {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function optionsFor(areas) {
  const [accent, surface, ink, line, muted] = ["--accent", "--surface", "--ink", "--line", "--muted"].map(colourOf);
  const font = getComputedStyle(document.body).fontFamily;
  return {
    animation: false,
    aria: { enabled: true, label: { description: "Tokens by server and tool; the tables below say the same." } },
    textStyle: { fontFamily: font },
    // Rich text is drawn on the canvas; an HTML tooltip would need inline styles, which the policy forbids.
    tooltip: {
      renderMode: "richText",
      backgroundColor: surface,
      borderColor: line,
      textStyle: { color: ink, fontSize: 12 },
      formatter: ({ treePathInfo, value }) =>
        `${treePathInfo.slice(1).map((step) => step.name).join(" › ")}\n${value.toLocaleString("en")} tokens`,
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
        breadcrumb: { show: false },
        visibleMin: 40,
        label: { fontSize: 11, overflow: "truncate", color: "#fff", padding: [4, 6] },
        upperLabel: { show: true, height: 24, color: ink, fontSize: 12, fontWeight: 600, padding: [0, 4] },
        itemStyle: { borderColor: surface, gapWidth: 1, borderRadius: 3 },
        levels: [
          { itemStyle: { borderWidth: 0, gapWidth: 8 }, upperLabel: { show: false } },
          { itemStyle: { borderColor: surface, borderWidth: 2, gapWidth: 2 } },
          { colorSaturation: [0.35, 0.6], itemStyle: { borderWidth: 0 } },
        ],
        color: [accent],
        emphasis: { upperLabel: { show: true, color: ink }, label: { color: "#fff" } },
        silent: false,
        select: { itemStyle: { color: muted } },
      },
    ],
  };
}

function drawTreemap(element) {
  const areas = JSON.parse(document.getElementById(element.dataset.treemap).textContent);
  element.hidden = false;
  const chart = echarts.init(element);
  const draw = () => chart.setOption(optionsFor(areas), true);
  draw();
  chart.on("click", ({ data }) => { if (data && data.url) window.location.assign(data.url); });
  new ResizeObserver(() => chart.resize()).observe(element);
  document.addEventListener("theme-chosen", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

document.querySelectorAll("[data-treemap]").forEach(drawTreemap);
