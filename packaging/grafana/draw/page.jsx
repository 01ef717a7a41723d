// Draws a Grafana dashboard in the browser with Grafana's own components: reads the panels of its JSON, asks Prometheus for
// every target, and gives the answers to the parts that Grafana itself draws with. draw.mjs opens this page.
import { createRoot } from 'react-dom/client';
import {
  createTheme, dateTime, FieldType, getDisplayProcessor, getFieldDisplayValues, rangeUtil, ThemeContext, toDataFrame,
} from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import {
  BigValue, GlobalStyles, Icon, InlineLabel, PanelChrome, RefreshPicker, Select, Text, TimeRangePicker, TimeSeries,
} from '@grafana/ui';

const { dashboard, from, to, minutes, scrapeInterval, theme: colorMode } = window.settings;
const theme = createTheme({ colors: { mode: colorMode } });
const timeZone = 'utc';
const timeRange = { from: dateTime(from), to: dateTime(to), raw: { from: `now-${minutes}m`, to: 'now' } };
window.report = [];

// Grafana's grid: 24 columns, rows of 30 pixels, 8 pixels between them.
const columns = 24, rowHeight = 30, gap = 8, padding = 16, pageWidth = window.innerWidth - 2 * padding;
const controlsHeight = 32;
const placeOf = ({ x, y, w, h }) => ({
  left: (x * (pageWidth + gap)) / columns,
  top: y * (rowHeight + gap),
  width: (w * (pageWidth + gap)) / columns - gap,
  height: h * (rowHeight + gap) - gap,
});

// What Grafana fills in where the JSON of a panel says nothing: with these, a stat above 80 is red.
const defaultThresholds = { mode: 'absolute', steps: [{ color: 'green', value: -Infinity }, { color: 'red', value: 80 }] };
const defaultLine = {
  drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', spanNulls: false,
  showPoints: 'auto', pointSize: 5, stacking: { mode: 'none', group: 'A' }, axisPlacement: 'auto', axisBorderShow: false,
  axisColorMode: 'text', scaleDistribution: { type: 'linear' }, thresholdsStyle: { mode: 'off' },
};

function configOf(panel) {
  const { custom, thresholds, ...rest } = panel.fieldConfig.defaults;
  const steps = thresholds?.steps.map((step) => ({ ...step, value: step.value ?? -Infinity }));
  return {
    color: { mode: panel.type === 'stat' ? 'thresholds' : 'palette-classic' },
    ...rest,
    thresholds: thresholds ? { ...thresholds, steps } : defaultThresholds,
    custom: { ...defaultLine, ...custom },
  };
}

// Puts in what Grafana computes, and for the variables of the dashboard all values, as their default is.
function withVariables(query, interval) {
  const scrape = rangeUtil.intervalToMs(scrapeInterval);
  const rateInterval = Math.max(interval + scrape, 4 * scrape);
  let text = query.replaceAll('$__rate_interval', `${rateInterval / 1000}s`).replaceAll('$__interval', `${interval / 1000}s`);
  for (const { name, allValue } of dashboard.templating.list) text = text.replaceAll(`$${name}`, allValue ?? '.*');
  return text;
}

async function query(expression, interval) {
  const text = withVariables(expression, interval);
  // Grafana asks for whole steps, so that a picture does not tremble while time goes on.
  const start = Math.floor(from / interval) * interval, end = Math.floor(to / interval) * interval;
  const parameters = new URLSearchParams({ query: text, start: start / 1000, end: end / 1000, step: interval / 1000 });
  const answer = await (await fetch(`/prometheus/api/v1/query_range?${parameters}`)).json();
  if (answer.status !== 'success') throw new Error(`${text}: ${answer.error}`);
  const times = Array.from({ length: (end - start) / interval + 1 }, (_, index) => start + index * interval);
  return answer.data.result.map(({ metric, values }) => {
    const known = new Map(values.map(([time, value]) => [Math.round(time * 1000), Number(value)]));
    return { labels: metric, times, values: times.map((time) => known.get(time) ?? null) };
  });
}

async function framesOf(panel, width) {
  const config = configOf(panel);
  const interval = rangeUtil.calculateInterval(timeRange, Math.round(width), scrapeInterval).intervalMs;
  const answers = await Promise.all(panel.targets.map(async ({ expr, legendFormat, refId }) =>
    (await query(expr, interval)).map((series) => ({ ...series, refId, legendFormat }))));
  // Named on stdout by draw.mjs.
  if (answers.flat().length === 0) window.report.push(`no data: ${panel.title}`);
  return answers.flat().map(({ labels, times, values, refId, legendFormat }, seriesIndex) => {
    const name = legendFormat.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '') || panel.targets[0].expr;
    // A graph has a gap where there is no number; a stat would show NaN, as Grafana does.
    const drawn = panel.type === 'stat' ? values : values.map((value) => (Number.isFinite(value) ? value : null));
    const frame = toDataFrame({
      refId, name,
      fields: [
        { name: 'Time', type: FieldType.time, values: times, config: { interval } },
        { name: 'Value', type: FieldType.number, values: drawn, labels, config: { ...config, displayNameFromDS: name } },
      ],
    });
    for (const field of frame.fields) {
      const numbers = field.values.filter(Number.isFinite);
      const [min, max] = [config.min ?? Math.min(...numbers), config.max ?? Math.max(...numbers)];
      field.state = { seriesIndex, range: { min, max, delta: max - min } };
      field.display = getDisplayProcessor({ field, theme, timeZone });
    }
    return frame;
  });
}

function Stat({ panel, frames, width, height }) {
  const [value] = getFieldDisplayValues({
    data: frames, theme, timeZone, sparkline: panel.options.graphMode !== 'none', replaceVariables: (text) => text,
    reduceOptions: { values: false, ...panel.options.reduceOptions }, fieldConfig: panel.fieldConfig,
  });
  const { colorMode, graphMode } = panel.options;
  const sparkline = value.sparkline && { ...value.sparkline, timeRange };
  return (
    <BigValue value={value.display} count={1} sparkline={sparkline} colorMode={colorMode} graphMode={graphMode}
      textMode="auto" width={width} height={height} theme={theme} />
  );
}

// A dashed line with a triangle at its foot, as Grafana marks an event. Grafana's own code for it is in no package.
function addAnnotations(config, annotations) {
  config.addHook('draw', (plot) => {
    const { ctx: context, bbox: box } = plot;
    for (const { time, color } of annotations) {
      const x = plot.valToPos(time, 'x', true);
      context.save();
      context.strokeStyle = context.fillStyle = theme.visualization.getColorByName(color);
      context.lineWidth = 2;
      context.setLineDash([5, 5]);
      context.beginPath();
      context.moveTo(x, box.top);
      context.lineTo(x, box.top + box.height);
      context.stroke();
      context.beginPath();
      context.moveTo(x - 5, box.top + box.height + 6);
      context.lineTo(x + 5, box.top + box.height + 6);
      context.lineTo(x, box.top + box.height);
      context.fill();
      context.restore();
    }
  });
}

function Graph({ panel, frames, annotations, width, height }) {
  return (
    <TimeSeries frames={frames} structureRev={1} width={width} height={height} timeRange={timeRange} timeZone={timeZone}
      theme={theme} legend={{ showLegend: true, ...panel.options.legend }} options={panel.options}>
      {(config) => { addAnnotations(config, annotations); return null; }}
    </TimeSeries>
  );
}

function Panel({ panel, frames, annotations }) {
  const place = placeOf(panel.gridPos);
  const style = { position: 'absolute', ...place };
  if (panel.type === 'row') {
    return (
      <div style={{ ...style, display: 'flex', alignItems: 'center', gap, ...theme.typography.h5 }}>
        <Icon name="angle-down" /> {panel.title}
      </div>
    );
  }
  const Kind = { stat: Stat, timeseries: Graph }[panel.type];
  return (
    <div style={style}>
      <PanelChrome title={panel.title} description={panel.description} width={place.width} height={place.height}>
        {(width, height) => frames.length === 0
          ? <div style={{ height, display: 'grid', placeItems: 'center' }}>No data</div>
          : <Kind {...{ panel, frames, annotations, width, height }} />}
      </PanelChrome>
    </div>
  );
}

const ignore = () => {};

// The bar above the panels: the variables, the time and the refresh, as Grafana shows them.
function Controls() {
  return (
    <div style={{ display: 'flex', alignItems: 'center', gap: 16, height: controlsHeight, marginBottom: padding }}>
      <Text element="h1" variant="h4">{dashboard.title}</Text>
      {dashboard.templating.list.map(({ name, label, type }) => {
        const option = { value: name, label: type === 'datasource' ? 'prometheus' : 'All' };
        return (
          <div key={name} style={{ display: 'flex' }}>
            <InlineLabel width="auto">{label}</InlineLabel>
            <Select width={type === 'datasource' ? 18 : 12} options={[option]} value={option} onChange={ignore} />
          </div>
        );
      })}
      <div style={{ flexGrow: 1 }} />
      <TimeRangePicker value={timeRange} timeZone={timeZone} onChange={ignore} onChangeTimeZone={ignore}
        onMoveBackward={ignore} onMoveForward={ignore} onZoom={ignore} isOnCanvas />
      <RefreshPicker value={dashboard.refresh} onIntervalChanged={ignore} onRefresh={ignore} isOnCanvas />
    </div>
  );
}

async function readAnnotations() {
  const found = [];
  for (const { expr, iconColor, enable } of dashboard.annotations.list) {
    if (!enable || !expr) continue;
    // Grafana's data source asks for annotations in steps of a minute.
    for (const { times, values } of await query(expr, 60_000)) {
      times.forEach((time, index) => time >= from && values[index] !== null && found.push({ time, color: iconColor }));
    }
  }
  return found;
}

async function main() {
  await initPluginTranslations('dashboard-picture');
  const annotations = await readAnnotations();
  const panels = await Promise.all(dashboard.panels.map(async (panel) =>
    ({ panel, frames: panel.targets ? await framesOf(panel, placeOf(panel.gridPos).width) : [] })));
  const gridHeight = Math.max(...dashboard.panels.map(({ gridPos }) => placeOf(gridPos).top + placeOf(gridPos).height));
  const root = createRoot(document.getElementById('root'));
  const withTheme = (content) => <ThemeContext.Provider value={theme}><GlobalStyles />{content}</ThemeContext.Provider>;
  // The plots measure their labels once, so the fonts that the global styles name have to be there before them.
  root.render(withTheme(null));
  await new Promise((resolve) => setTimeout(resolve, 100));
  await Promise.all([400, 500].map((weight) => document.fonts.load(`${weight} 12px Inter`)));
  root.render(withTheme(
    <div style={{ padding, background: theme.colors.background.canvas, minHeight: '100vh' }}>
      <Controls />
      <div style={{ position: 'relative', height: gridHeight }}>
        {panels.map(({ panel, frames }) => <Panel key={panel.id} {...{ panel, frames, annotations }} />)}
      </div>
    </div>,
  ));
  window.report.push(`${annotations.length} annotations`);
  window.pictureHeight = Math.ceil(gridHeight + controlsHeight + 3 * padding);
}

main();
