/** Anything else by perf: what the kernel sees on the stack. */
import { join } from 'node:path';
import type { ProfileOrder } from './profile.ts';
import { findTool, inTemporaryFolder, runTool } from './runTool.ts';

/** Not 100, so that it does not run in step with what the program does each hundredth. */
const SAMPLES_PER_SECOND = '99';

export async function profileByPerf(order: ProfileOrder): Promise<string> {
  const install = 'install the perf of its kernel (Debian: linux-perf)';
  const file = findTool('perf', order.path, install);
  return inTemporaryFolder(async (folder) => {
    const data = join(folder, 'perf.data');
    const record = ['record', '-q', '-F', SAMPLES_PER_SECOND, '-g', '-p', String(order.pid)];
    await runTool(file, [...record, '-o', data, '--', 'sleep', String(order.seconds)], order);
    return foldPerf(await runTool(file, ['script', '-i', data], order));
  });
}

/** A sample is a line about it, a line for each frame from the innermost on, and an empty one. */
export function foldPerf(script: string): string {
  const counts = new Map<string, number>();
  for (const sample of script.split(/\n\s*\n/)) {
    const [about = '', ...lines] = sample.split('\n').filter((line) => line.trim() !== '');
    const program = /^\s*(.+?)\s+\d+(?:\/\d+)?\s+(?:\[\d+\]\s+)?[\d.]+:/.exec(about)?.[1];
    if (program === undefined) continue;
    const frames = lines.map(frameName).toReversed();
    const stack = [program, ...frames].map((name) => name.replaceAll(';', ':')).join(';');
    counts.set(stack, (counts.get(stack) ?? 0) + 1);
  }
  return [...counts].map(([stack, count]) => `${stack} ${count}\n`).join('');
}

/** `ADDRESS SYMBOL+OFFSET (MODULE)`; without a symbol the module says more than an address. */
function frameName(line: string): string {
  const found = /^\s*[0-9a-f]+\s+(.*?)(?:\+0x[0-9a-f]+)?\s+\(([^)]*)\)\s*$/.exec(line);
  const [, symbol = '[unknown]', module = ''] = found ?? [];
  if (symbol !== '[unknown]') return symbol;
  const name = module.split('/').at(-1);
  return name === undefined || name === '[unknown]' || name === '' ? symbol : `[${name}]`;
}
