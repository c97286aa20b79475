/** The drawing of a simulation: the queue above, the use of the fleet below, over time. */
import type { RunReport } from '../../protocol/simulation.ts';
import { countTicks, timeTicks, type Ticks } from './ticks.ts';

const WIDTH = 960;
const LEFT = 72;
const RIGHT = 24;
const TOP = 56;
const PANEL_HEIGHT = 200;
const PANEL_GAP = 64;
const BOTTOM = 48;
const HEIGHT = TOP + 2 * PANEL_HEIGHT + PANEL_GAP + BOTTOM;
const LEGEND_GAP = 18;
/** About the width of a letter at this size, to place the legend. */
const LETTER = 6.6;

const STYLE = [
  'text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#24292f}',
  '.title{font-size:15px;font-weight:600}',
  '.panel{font-weight:600}',
  '.tick{fill:#57606a}',
  '.grid{stroke:#d8dee4;stroke-width:1}',
  '.axis{stroke:#57606a;stroke-width:1}',
  '.line{fill:none;stroke-width:1.75;stroke-linejoin:round}',
].join('');

interface Line {
  label: string;
  colour: string;
  dashed: boolean;
  filled: boolean;
  stepMs: number;
  values: number[];
}

const [BLUE, RED, GREEN, ORANGE] = ['#0969da', '#cf222e', '#1a7f37', '#bc4c00'] as const;

export function drawRuns(title: string, runs: RunReport[]): string {
  const untilMs = Math.max(1, ...runs.map((run) => run.makespanMs));
  const ticks = timeTicks(untilMs);
  const queue = queueLines(runs);
  const highest = Math.max(1, ...queue.flatMap(({ values }) => values));
  const below = TOP + PANEL_HEIGHT + PANEL_GAP;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" ` +
      `width="${WIDTH}" height="${HEIGHT}" role="img">`,
    `<title>${escaped(`Simulation of ${title}`)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    `<text class="title" x="${LEFT}" y="24">${escaped(title)}</text>`,
    ...panel({ y: TOP, name: 'Tasks', lines: queue, scale: countTicks(highest), ticks }),
    ...panel({
      y: below,
      name: 'Utilisation',
      lines: useLines(runs),
      scale: { top: 1, at: [0, 0.25, 0.5, 0.75, 1].map((value) => ({ value, label: per(value) })) },
      ticks,
    }),
    ...ticks.at.map(
      ({ value, label }) =>
        `<text class="tick" x="${x(value, ticks)}" y="${below + PANEL_HEIGHT + 18}" ` +
        `text-anchor="middle">${escaped(label)}</text>`,
    ),
    `<text class="tick" x="${WIDTH - RIGHT}" y="${HEIGHT - 10}" text-anchor="end">` +
      'time since the first submission</text>',
    '</svg>',
    '',
  ].join('\n');
}

function queueLines(runs: RunReport[]): Line[] {
  const [only] = runs;
  if (runs.length === 1 && only) {
    return [line(only, 'waiting', 'waiting', RED, true), line(only, 'running', 'running', BLUE)];
  }
  return runs.map((run, at) => line(run, 'waiting', `waiting: ${run.name}`, colourOf(at)));
}

function useLines(runs: RunReport[]): Line[] {
  const lines = runs.flatMap((run, at) => {
    const named = (what: string): string => (runs.length === 1 ? what : `${what}: ${run.name}`);
    const colour = runs.length === 1 ? GREEN : colourOf(at);
    const cpu = { ...line(run, 'cpu', named('CPU'), colour), dashed: run.fleet.devices > 0 };
    if (run.fleet.devices === 0) return [cpu];
    return [line(run, 'devices', named('devices'), colour, runs.length === 1), cpu];
  });
  return lines;
}

function colourOf(at: number): string {
  return [BLUE, ORANGE, GREEN, RED][at % 4] as string;
}

function line(
  { series }: RunReport,
  name: 'waiting' | 'running' | 'cpu' | 'devices',
  label: string,
  colour: string,
  filled = false,
): Line {
  return { label, colour, dashed: false, filled, stepMs: series.stepMs, values: series[name] };
}

interface Panel {
  y: number;
  name: string;
  lines: Line[];
  scale: Ticks;
  ticks: Ticks;
}

function panel({ y, name, lines, scale, ticks }: Panel): string[] {
  const bottom = y + PANEL_HEIGHT;
  const rise = (value: number): number => round(bottom - (value / scale.top) * PANEL_HEIGHT);
  const right = WIDTH - RIGHT;
  return [
    `<text class="panel" x="${LEFT}" y="${y - 10}">${escaped(name)}</text>`,
    ...legend(lines, y - 10),
    ...scale.at.map(
      ({ value, label }) =>
        `<line class="grid" x1="${LEFT}" x2="${right}" y1="${rise(value)}" y2="${rise(value)}"/>` +
        `<text class="tick" x="${LEFT - 8}" y="${rise(value) + 4}" text-anchor="end">` +
        `${escaped(label)}</text>`,
    ),
    ...ticks.at.map(
      ({ value }) =>
        `<line class="axis" x1="${x(value, ticks)}" x2="${x(value, ticks)}" ` +
        `y1="${bottom}" y2="${bottom + 4}"/>`,
    ),
    ...lines.flatMap((one) => draw(one, rise, bottom, ticks)),
    `<line class="axis" x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`,
    `<line class="axis" x1="${LEFT}" x2="${LEFT}" y1="${y}" y2="${bottom}"/>`,
  ];
}

/** Right-aligned above the panel, in the order of the lines. */
function legend(lines: Line[], y: number): string[] {
  let right = WIDTH - RIGHT;
  return lines
    .toReversed()
    .map(({ label, colour, dashed }) => {
      const key = round(right - label.length * LETTER - 8);
      right = key - 24 - LEGEND_GAP;
      return (
        `<line x1="${key - 24}" x2="${key}" y1="${y - 4}" y2="${y - 4}" stroke="${colour}" ` +
        `stroke-width="2.5"${dashed ? ' stroke-dasharray="5 4"' : ''}/>` +
        `<text x="${key + 8}" y="${y}">${escaped(label)}</text>`
      );
    })
    .toReversed();
}

/** Steps, since each value is the mean of one. */
function draw(
  { values, stepMs, colour, dashed, filled }: Line,
  rise: (value: number) => number,
  bottom: number,
  ticks: Ticks,
): string[] {
  if (values.length === 0) return [];
  const right = WIDTH - RIGHT;
  const points: string[] = [];
  for (const [at, value] of values.entries()) {
    const from = Math.min(right, x(at * stepMs, ticks));
    const to = Math.min(right, x((at + 1) * stepMs, ticks));
    points.push(`${from},${rise(value)}`, `${to},${rise(value)}`);
  }
  const last = points.at(-1)?.split(',')[0];
  const area = `M${LEFT},${bottom} L${points.join(' ')} ${last},${bottom} Z`;
  return [
    ...(filled ? [`<path d="${area}" fill="${colour}" fill-opacity="0.12"/>`] : []),
    `<polyline class="line" stroke="${colour}"${dashed ? ' stroke-dasharray="5 4"' : ''} ` +
      `points="${points.join(' ')}"/>`,
  ];
}

function x(atMs: number, ticks: Ticks): number {
  return round(LEFT + (atMs / ticks.top) * (WIDTH - LEFT - RIGHT));
}

function per(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replace(/[&<>"]/g, (letter) => names[letter] ?? letter).replace(/\p{Cc}/gu, ' ');
}
