// The parts of Apache ECharts that the console draws with; bundled into echarts.min.js (see ../README.md).
import { init, use } from "echarts/core";
import { LineChart, TreemapChart } from "echarts/charts";
import { AriaComponent, GridComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

use([AriaComponent, CanvasRenderer, GridComponent, LineChart, TooltipComponent, TreemapChart]);

export { init };
