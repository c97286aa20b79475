/** docs/getting-started.md, typed from the top to the bottom; what it shows must come. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT, startJourney, type, type Journey } from '../support/journey.ts';
import { sweep } from '../support/leftovers.ts';

interface Step {
  line: number;
  commands: string;
  shown: string[];
}

let journey: Journey;
beforeAll(async () => {
  // No GPUs, whatever this machine has: the page says what happens without.
  journey = await startJourney({ args: ['--resources', 'cpus=2,mem=4Gi'] });
});
afterAll(async () => {
  await journey.close();
  sweep(journey.home);
});

/** Each block of commands, with what the block of text after it shows. */
function stepsOf(page: string): Step[] {
  const steps: Step[] = [];
  for (const { 1: kind, 2: text = '', index } of page.matchAll(/^```(sh|text)\n([^]*?)^```$/gm)) {
    const line = page.slice(0, index).split('\n').length;
    if (kind === 'sh') steps.push({ line, commands: text, shown: [] });
    else steps.at(-1)?.shown.push(...text.trim().split('\n'));
  }
  return steps;
}

test('every command works and shows what the page says', async () => {
  const page = readFileSync(path.join(ROOT, 'docs/getting-started.md'), 'utf8');
  const steps = stepsOf(page).filter(({ commands }) => commands !== 'make up\n');
  expect(steps.length).toBeGreaterThan(7);
  // One shell for all, so that variables stay; marks tell the blocks apart.
  const script = steps
    .map(({ commands, line }) => `echo "== ${line}"\n${commands}`)
    .join('')
    .replaceAll('http://127.0.0.1:7070', journey.url);
  const shell = type('/bin/bash', ['-e', '-c', `exec 2>&1\n${script}\nkill %1; wait`], {
    env: { HOME: journey.home },
  });
  const { stdout } = await shell.ended;
  const parts = new Map(
    stdout
      .split(/^== /m)
      .slice(1)
      .map((part) => [Number(part.split('\n', 1)[0]), part]),
  );
  for (const { line, shown } of steps) {
    const output = parts.get(line);
    expect(output, `the block at line ${line} was reached:\n${stdout}`).toBeDefined();
    for (const text of shown) expect(output).toMatch(patternOf(text));
  }
}, 180_000);

/** `…` stands for anything on the line. */
function patternOf(text: string): RegExp {
  const parts = text
    .split('…')
    .map((part) => part.trim().replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(parts.join('.*'));
}
