/** A figure of the edge as a row like those of the other benchmarks. */
import type { Row } from '../jobs/support/report.ts';

export function row(
  scenario: string,
  value: number,
  unit: string,
  most: number | null,
  note: string,
): Row {
  return {
    scenario,
    system: 'drover',
    durability: 'SQLite WAL, synchronous FULL, group commit',
    value: Number(value.toPrecision(4)),
    unit,
    target: most,
    met: most === null ? null : value <= most,
    ratioToBare: null,
    note,
  };
}
