// The parts of Apache ECharts that the console draws with; bundled into echarts.min.js (see ../README.md).
import { init, use } from "echarts/core";
import { BarChart, LineChart, TreemapChart } from "echarts/charts";
import { AriaComponent, GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

use([
  AriaComponent,
  BarChart,
  CanvasRenderer,
  GridComponent,
  LineChart,
  MarkLineComponent,
  TooltipComponent,
  TreemapChart,
]);

export { init };
