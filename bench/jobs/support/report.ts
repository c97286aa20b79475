/** Collects the figures of a run, prints them as a table and writes them as flat rows. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { METRICS, type MetricName } from './metrics.ts';

/** The system every ratio is to: the least that could do the same work durably. */
export const BARE = 'bare';
export const DROVER = 'drover';

export interface Row {
  scenario: string;
  system: string;
  durability: string;
  /** Null when the measurement failed; the note says why. */
  value: number | null;
  unit: string;
  target: number | null;
  met: boolean | null;
  ratioToBare: number | null;
  note: string;
}

export interface Figure {
  system: string;
  durability: string;
  value: number | null;
  note?: string;
}

export class Report {
  #figures: { metric: MetricName; figure: Figure }[] = [];
  #judge: boolean;

  /** Without `judge` no target is shown as met or missed: a smaller run cannot tell. */
  constructor(judge: boolean) {
    this.#judge = judge;
  }

  add(metric: MetricName, figure: Figure): void {
    this.#figures.push({ metric, figure });
    const { title, unit } = METRICS[metric];
    const value = figure.value === null ? 'failed' : `${show(figure.value)} ${unit}`;
    process.stderr.write(`  ${title} | ${figure.system}: ${value} ${figure.note ?? ''}\n`);
  }

  get failures(): number {
    return this.#figures.filter(({ figure }) => figure.value === null).length;
  }

  value(metric: MetricName, system: string): number | null {
    const found = this.#figures.find((f) => f.metric === metric && f.figure.system === system);
    return found?.figure.value ?? null;
  }

  rows(): Row[] {
    return this.#figures.map(({ metric, figure }) => {
      const { scenario, title, unit, better, target } = METRICS[metric];
      const own = this.#judge && figure.system === DROVER ? target : null;
      const bare = this.value(metric, BARE);
      return {
        scenario: `${scenario}. ${title}`,
        system: figure.system,
        durability: figure.durability,
        value: figure.value === null ? null : round(figure.value),
        unit,
        target: own,
        met: own === null ? null : meets(figure.value, own, better),
        ratioToBare: figure.value === null || !bare ? null : round(figure.value / bare),
        note: figure.note ?? '',
      };
    });
  }

  write(file: string): void {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(this.rows(), null, 2)}\n`);
  }

  print(): void {
    const rows = this.rows();
    const scenarios = new Set(rows.map((row) => row.scenario));
    for (const scenario of scenarios) {
      const own = rows.filter((row) => row.scenario === scenario);
      const drover = own.find((row) => row.system === DROVER)?.value ?? null;
      process.stdout.write(`\n${scenario} (${own[0]?.unit})\n`);
      process.stdout.write(table(own.map((row) => cells(row, drover))));
    }
  }
}

const HEADINGS = ['system', 'value', 'to bare', 'drover to it', 'target', 'met', 'durability'];

function cells(row: Row, drover: number | null): string[] {
  const against = drover !== null && row.value && row.system !== DROVER ? drover / row.value : null;
  return [
    row.system,
    row.value === null ? 'failed' : show(row.value),
    row.ratioToBare === null ? '' : row.ratioToBare.toFixed(2),
    against === null ? '' : against.toFixed(2),
    row.target === null ? '' : show(row.target),
    row.met === null ? '' : row.met ? 'yes' : 'NO',
    row.note ? `${row.durability}; ${row.note}` : row.durability,
  ];
}

function table(body: string[][]): string {
  const lines = [HEADINGS, ...body];
  const widths = HEADINGS.map((_, i) => Math.max(...lines.map((line) => (line[i] ?? '').length)));
  const last = HEADINGS.length - 1;
  const text = lines.map((line) =>
    line
      // Numbers line up on the right; names and the last, long column on the left.
      .map((cell, i) =>
        i === 0 || i === last ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!),
      )
      .join('  ')
      .trimEnd(),
  );
  return `${text.map((line) => `  ${line}`).join('\n')}\n`;
}

function meets(value: number | null, target: number, better: 'higher' | 'lower'): boolean {
  if (value === null) return false;
  return better === 'higher' ? value >= target : value <= target;
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

function show(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}
